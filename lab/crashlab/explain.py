"""Why a finding happens and what mends it, in the words of its op.

Kills are explained here: what was in flight, or what was done that nothing on disk knew of. Power
losses stand in :mod:`crashlab.explain_loss`, damage in :mod:`crashlab.explain_damage`.
Each text is chosen by the kind and by the op at the crash point; nothing here judges.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from crashlab import trace as t
from crashlab.crash.places import place_path
from crashlab.crash.states import prefixes_of
from crashlab.demands import WHOLE_BATCH, effect_of
from crashlab.explain_damage import why_damaged
from crashlab.protocols import is_log
from crashlab.tree import File

if TYPE_CHECKING:
    from crashlab.crash.states import CrashState
    from crashlab.demands import Problem
    from crashlab.judge import Judgement


@dataclass(frozen=True, slots=True)
class Explanation:
    """One sentence of cause, and sentences of advice."""

    why: str
    advice: tuple[str, ...] = ()


_EFFECT_ADVICE = (
    "Make the pending call durable before op {n} (save point A). On resume do not run a pending call:",
    "look it up, or report it unknown. Or give it a key.",
)
_BY_KIND: dict[str, Explanation] = {
    "hang": Explanation(
        "Recovery waits for something that died with the process.",
        ("Look for a lock file or a running mark that only a living process removes; use an OS lock instead.",),
    ),
    "left-process": Explanation(
        "Recovery started a process and returned without ending it.",
        ("End children before returning: the next recovery would meet them alive.",),
    ),
    "needless-unknown": Explanation(
        "The files in this state tell whether the effect was done, in every run that leaves them.",
        ("Read the ledger, or the mark that the call has not started, before answering unknown.",),
    ),
    "invalid-transcript": Explanation(
        "What resume sends is no valid conversation: a real server answers 400.",
        ("Give each tool_use exactly one tool_result, all of a turn in the next user message.",),
    ),
    "evidence-destroyed": Explanation(
        "The refusal overwrote the files that a person needs to find out what happened.",
        ("Refuse before writing anything; keep a damaged file under its own name.",),
    ),
    "missing-effect": Explanation(
        "Something on disk says that the effect was done, and the outside world has not seen it.",
        (
            "Mark it as pending before, as done after; on resume look a pending one up or report it unknown.",
            "A record of done that is written before the act is a promise that a kill breaks.",
        ),
    ),
}


def explain(judgement: Judgement) -> Explanation:
    """Cause and advice for a violation."""
    kind, state = judgement.kind, judgement.state
    if state.damage is not None:
        return Explanation(*why_damaged(kind, state.damage, judgement.problems[0].step))
    if judgement.problems[0].step in ("second", "third"):
        return _again(kind)
    if kind == "duplicate-effect":
        return _duplicate(state, judgement.problems[0])
    if kind == "torn" and (told := _of_a_mix(judgement)) is not None:
        return told
    if kind in _BY_KIND:
        return _BY_KIND[kind]
    if kind in ("torn", "lost", "stuck", "silent-reset", "hole"):
        return _half_done(state)
    advice = (
        "Let resume go on to the same end. Where it only loads what is there, or may rightly end otherwise,",
        "say what must hold instead: check=…, or --check of crashlab run.",
    )
    compared = bool(judgement.problems[0].expected)  # else a check has said what must hold
    return Explanation(
        "After this crash the resumed run goes another way than the uncrashed one.", advice if compared else ()
    )


def _duplicate(state: CrashState, problem: Problem) -> Explanation:
    last = effect_of(state, problem) or next((op for op in reversed(state.effects) if op.counted), None)
    n = last.n if last else state.done
    if _is_marked(state, n):
        return Explanation(
            "A save came right before the effect, and yet resume ran the call again.",
            ("On resume do not run a call that may have run: look it up, or report it unknown. Or give it a key.",),
        )
    return Explanation(
        "No save point says that the call was about to run, so resume runs it again.",
        tuple(line.format(n=n) for line in _EFFECT_ADVICE),
    )


def _is_marked(state: CrashState, n: int) -> bool:
    """Whether a save point of its own stands right before the effect ``n``, after whatever was done before."""
    for op in reversed(state.trace.ops[: n - 1]):
        if isinstance(op, t.SavePoint):
            return op.name.rpartition(".")[2] in ("A", "S")
        if isinstance(op, (t.Effect, t.Write)):
            return False
    return False


def _of_a_mix(judgement: Judgement) -> Explanation | None:
    """Why a value came back that is half of two: a batch in several records, or one value in several files."""
    state = judgement.state
    if judgement.problems[0].expected == (WHOLE_BATCH,):
        return Explanation(
            "The batch is written record by record, and nothing tells on load whether its last record is there.",
            (
                "Write the batch as one record, or end it with a mark that counts its records; on load drop what",
                "stands behind the last whole batch, and cut it off before the next append.",
            ),
        )
    renamed = {op.to for op in state.trace.ops if isinstance(op, t.Rename)}
    last = next((op for op in reversed(state.trace.ops[: state.last_op]) if isinstance(op, t.FileOp)), None)
    if len(renamed) < 2 or state.cut_bytes is not None or last is None:  # noqa: PLR2004 - one value in two files
        return None
    return Explanation(
        "One value stands in several files, each replaced by itself: between two of these the files are of two saves.",
        (
            "Put what belongs together into one file. Or write new files under names of this save, and switch to all",
            "of them by one rename of a file that names them.",
        ),
    )


def _again(kind: str) -> Explanation:
    if kind == "duplicate-entry":
        return Explanation(
            "A batch was appended again after the crash, as by a caller that knows no better, and an event that was "
            "there already was stored a second time.",
            ("Before an append look whether the key of each event is there already, and leave those out.",),
        )
    if kind in ("lost", "stuck"):
        return Explanation(
            "What the crash left behind (half a record, a temporary file, a lock) spoils the next save.",
            (
                "Clean up when opening: cut a half record off, remove own temporary files,",
                "take over a dead owner's lock.",
            ),
        )
    return Explanation(
        "The first recovery changed something that the second one reads otherwise.",
        ("Make recovery save what it decided before it acts, so that doing it again changes nothing.",),
    )


def _half_done(state: CrashState) -> Explanation:
    unfinished = _unfinished_write(state)
    if (removed := _removed_first(state)) is not None:
        name = place_path(removed.path)
        return Explanation(
            f"{name} is removed before its successor has its name: from op {removed.n} on neither is there.",
            (f"Do not remove {name} first: a rename replaces it in one step.",),
        )
    if unfinished is None or _is_temporary(unfinished, state.trace):
        return Explanation("The files that this crash leaves are not a state that recovery knows.")
    if _is_record(unfinished, state):
        return Explanation(
            "The half record was never acked; it must not hide what comes before it.",
            (
                "On load ignore a last record without its end, and say so. Before the next append",
                "cut it off, or the next record is glued to it.",
            ),
        )
    name = unfinished.path.rpartition("/")[2]
    until = f"from op {unfinished.n} to the end of the write"
    if _is_first(unfinished, state.trace):
        why = f"{name} is made under its final name: {until} it is there and not whole."
    else:
        why = f"{name} is emptied or overwritten in place: {until} it is neither old nor new."
    return Explanation(
        why,
        (
            f"Write a temporary file in the same directory, fsync it, rename it over {name}, fsync the directory:",
            "a reader then meets the old file or the new one, never a mix.",
        ),
    )


def _is_record(op: t.FileOp, state: CrashState) -> bool:
    """Whether this is a part of a record that is appended: to a log, or cut behind what a file had before."""
    if not isinstance(op, t.Write):
        return False
    before = prefixes_of(state.trace).tree(op.n - 1).nodes[op.inode]
    appends = isinstance(before, File) and op.offset == before.content.size
    return appends and (is_log(state.trace, op.inode) or (state.cut_bytes is not None and op.offset > 0))


def _is_first(op: t.FileOp, trace: t.Trace) -> bool:
    """Whether the file is new, and nothing was promised of it before."""
    for earlier in reversed(trace.ops[: op.n]):
        if isinstance(earlier, t.Create) and earlier.inode == op.inode:
            return True
        if isinstance(earlier, (t.Ack, t.Effect)):
            return False
    return False


def _is_temporary(op: t.FileOp, trace: t.Trace) -> bool:
    """Whether this file gets another name later: then it is no overwriting in place."""
    return any(isinstance(later, t.Rename) and later.inode == op.inode for later in trace.ops[op.n :])


def _removed_first(state: CrashState) -> t.Unlink | None:
    """The removal of a file that a later rename brings back, where the crash fell between the two."""
    removed = next((op for op in reversed(state.trace.ops[: state.last_op]) if isinstance(op, t.FileOp)), None)
    while isinstance(removed, t.Fsync):
        before = state.trace.ops[: removed.n - 1]
        removed = next((op for op in reversed(before) if isinstance(op, t.FileOp)), None)
    if not isinstance(removed, t.Unlink):
        return None
    path = removed.path
    later = state.trace.ops[state.last_op :]
    return removed if any(isinstance(op, t.Rename) and op.to == path for op in later) else None


def _unfinished_write(state: CrashState) -> t.FileOp | None:
    """The op that took the old contents away: the write in flight, else the last change of a file."""
    for op in reversed(state.trace.ops[: state.last_op]):
        if isinstance(op, (t.Write, t.Truncate, t.Create)):
            return op
        if isinstance(op, (t.Ack, t.Effect)):
            return None
    return None
