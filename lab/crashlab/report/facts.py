"""What the views show of the trace and of a crash state: facts for the result model, up to a stated size.

A report must be readable without the run folder, so the bytes that a crash took stand in it, the first
ones of the first files. Everything that is left out is counted.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING

from crashlab import trace as t
from crashlab.crash.places import place_path
from crashlab.crash.states import prefixes_of
from crashlab.demands import words
from crashlab.report.model import Difference, FileChange, Moment
from crashlab.tree import Directory, File, type_name
from crashlab.values import shown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from crashlab.crash.states import CrashState
    from crashlab.tree import Node, Tree

MOMENTS_AT_MOST = 1_000
FILES_AT_MOST, PARTS_AT_MOST, PART_BYTES, LINE_BYTES = 8, 3, 48, 16
COMPARED_BYTES = 1024 * 1024
"""Bytes of a file that are looked through; what differs behind them is not counted."""
_TEXT_CHARACTERS = 80


def moments_of(trace: t.Trace) -> tuple[Moment, ...]:
    """The first thousand save points, counted effects and acks of the recorded run."""
    found: list[Moment] = []
    for op in trace.ops:
        if len(found) == MOMENTS_AT_MOST:
            break
        match op:
            case t.SavePoint():
                found.append(Moment(n=op.n, op="save point", text=_short(op.name)))
            case t.Effect() if op.counted:
                found.append(Moment(n=op.n, op="effect", text=_short(words(op))))
            case t.Ack():
                found.append(Moment(n=op.n, op="ack", text=shown(op.value, limit=_TEXT_CHARACTERS)))
    return tuple(found)


def changes_of(state: CrashState) -> tuple[FileChange, ...]:
    """What the crash did to the files: those that it changed first, then some that it left as they were.

    Before is what the running program saw: all that its ops had done, the one in flight included.
    """
    if state.fault == "race" or (state.fault == "error" and "/power@" not in state.id):
        return ()  # a live run: the program went on, and nothing was taken from it
    before = prefixes_of(state.trace).tree(state.last_op)
    return compare(before, state.tree)


def compare(before: Tree, after: Tree) -> tuple[FileChange, ...]:
    """Two trees, path by path; at most :data:`FILES_AT_MOST` paths, and a last one that counts the rest."""
    old, new = dict(_paths(before)), dict(_paths(after))
    changed = [path for path in sorted(old | new) if not _equal(old.get(path), new.get(path))]
    same = [path for path in sorted(old | new) if path not in set(changed)]
    listed = [*changed, *same][:FILES_AT_MOST]
    found = [_change(path, old.get(path), new.get(path)) for path in listed]
    if hidden := len(changed) + len(same) - len(listed):
        left = max(len(changed) - FILES_AT_MOST, 0)
        found.append(FileChange(path=f"{hidden} more, of which {left} changed", change="more"))
    return tuple(found)


def _paths(tree: Tree) -> Iterator[tuple[str, Node]]:
    for path, _, node in tree.walk():
        if not (isinstance(node, Directory) and path in ("dir", "home", "tmp")):
            yield path, node


def _equal(old: Node | None, new: Node | None) -> bool:
    if isinstance(old, File) and isinstance(new, File):
        return old.content.digest == new.content.digest and old.mode == new.mode
    if isinstance(old, Directory) and isinstance(new, Directory):
        return True  # what differs below it is listed by itself
    return old == new


def _change(path: str, old: Node | None, new: Node | None) -> FileChange:
    change = "back" if old is None else "gone" if new is None else "same" if _equal(old, new) else "changed"
    telling = old if new is None else new
    assert telling is not None, "one of two trees has the path"
    first, second = _bytes_of(old), _bytes_of(new)
    differs, parts = (0, ()) if change == "same" else _differences(first, second)
    parts = parts if change == "changed" else parts[:1]  # of a name that is lost or back, enough to know it by
    return FileChange(
        path=place_path(path),
        type=type_name(telling),
        change=change,
        before=_size_of(old),
        after=_size_of(new),
        differs=differs,
        parts=parts,
    )


def _size_of(node: Node | None) -> int | None:
    return None if node is None else node.content.size if isinstance(node, File) else 0


def _bytes_of(node: Node | None) -> bytes:
    return node.content.read()[:COMPARED_BYTES] if isinstance(node, File) else b""


def _differences(old: bytes, new: bytes) -> tuple[int, tuple[Difference, ...]]:
    """How many bytes differ, and the first stretches of them, each from the start of a line of 16 bytes."""
    common = min(len(old), len(new))
    differs = max(len(old), len(new)) - common
    if old[:common] != new[:common]:
        differs += sum(map(operator.ne, old[:common], new[:common]))
    parts, at = list[Difference](), 0
    while len(parts) < PARTS_AT_MOST and (at := _next_line(old, new, at)) >= 0:
        end = at + PART_BYTES
        parts.append(Difference(at=at, before=old[at:end].hex(), after=new[at:end].hex()))
        at = end
    return differs, tuple(parts)


def _next_line(old: bytes, new: bytes, at: int) -> int:
    """The start of the first line from ``at`` on that differs, or -1."""
    step = 4096
    for block in range(at, max(len(old), len(new)), step):
        if old[block : block + step] != new[block : block + step]:
            for line in range(block, block + step, LINE_BYTES):
                if old[line : line + LINE_BYTES] != new[line : line + LINE_BYTES]:
                    return line
    return -1


def _short(text: str) -> str:
    return text if len(text) <= _TEXT_CHARACTERS else f"{text[: _TEXT_CHARACTERS - 1]}…"
