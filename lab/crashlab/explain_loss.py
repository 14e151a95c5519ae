"""Why a power loss broke a promise, in the words of the ops that never reached the disk.

What mends it is not guessed here: :mod:`crashlab.advice` finds the barriers by trying them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from crashlab import trace as t
from crashlab.crash.shapes import TEMPORARY
from crashlab.crash.states import prefixes_of
from crashlab.demands import effect_of
from crashlab.tree import File

if TYPE_CHECKING:
    from collections.abc import Mapping

    from crashlab.crash.marks import Mark
    from crashlab.judge import Judgement

_RENAME_BEFORE_BYTES = "A rename may reach the disk before the bytes of the file it renames."
_NAME_NOT_SYNCED = "A new name is on disk only once its directory is synced; until then the old one may come back."
_BYTES_NOT_SYNCED = (
    "Written bytes are in memory only, until their file is synced; writes may reach the disk in any order."
)
_OVERWRITTEN = "The file is changed in place: each block of it may be old, new or missing, in any mix."
_BOTH = "Nothing was synced between these ops, so each of them may reach the disk without the others."


_VANISHED = (
    "A name that a rename replaces may vanish, so that neither the old file nor the new one is there, where the new "
    "one was not synced before the rename."
)
_TEMPORARY = "Files under $TMPDIR are gone after a power loss, however well they were synced."
NOTHING_LOST = (
    "Power was lost after this op, and every op before it had reached the disk: a kill here ends the same way."
)


def why_lost(judgement: Judgement, marks: Mapping[int, Mark]) -> str:
    """The cause of a violation after a power loss, in one or two sentences."""
    state = judgement.state
    if judgement.kind in ("duplicate-effect", "missing-effect") and (told := _save_point_before(judgement, marks)):
        return told
    renamed = {
        op.inode: op for op in state.trace.ops[: state.done] if isinstance(op, t.Rename) and not _gone(marks, op)
    }
    unnamed = {getattr(mark.op, "inode", None) for mark in marks.values() if mark.is_name and mark.whole}
    data = [mark.op for mark in marks.values() if mark.is_bytes and getattr(mark.op, "inode", None) not in unnamed]
    if any(getattr(op, "inode", None) in renamed for op in data):
        return _RENAME_BEFORE_BYTES
    names = [mark for mark in marks.values() if mark.is_name]
    if any("v" in mark.parts for mark in names):
        return _VANISHED
    if names and data:
        return _BOTH
    if names:
        return _NAME_NOT_SYNCED
    if any(_is_in_place(state.trace, op) for op in data):
        return _OVERWRITTEN
    if data:
        return _BYTES_NOT_SYNCED
    if any(path.startswith(f"{TEMPORARY}/") for path, _, _ in prefixes_of(state.trace).tree(state.done).walk()):
        return _TEMPORARY
    return NOTHING_LOST


def _gone(marks: Mapping[int, Mark], op: t.Op) -> bool:
    return op.n in marks and marks[op.n].whole


def _is_in_place(trace: t.Trace, op: t.Op) -> bool:
    """Whether a write or truncation changes bytes that the file had before."""
    if isinstance(op, t.Truncate):
        return True
    if not isinstance(op, t.Write):
        return False
    earlier = (
        each.offset + len(each.data)
        for each in trace.ops[: op.n - 1]
        if isinstance(each, t.Write) and each.inode == op.inode
    )
    before = trace.base.nodes.get(op.inode)
    size = before.content.size if isinstance(before, File) else 0
    return op.offset < max([size, *earlier])


def _save_point_before(judgement: Judgement, marks: Mapping[int, Mark]) -> str:
    """The last save point before the effect, if it was told while an op of its own was not yet durable."""
    state = judgement.state
    effect = effect_of(state, judgement.problems[0])
    if effect is None:
        return ""
    point = next((op for op in reversed(state.trace.ops[: effect.n - 1]) if isinstance(op, t.SavePoint)), None)
    lost = [n for n in marks if point is not None and n < point.n]
    if point is None or not lost:
        return ""
    return (
        f"Save point {point.name} (op {point.n}) was told before it was durable: its op {lost[-1]} was lost, and the "
        f"effect of op {effect.n} was not. What is done outside stays done, whatever the disk loses."
    )
