"""Findings of errors in words: where the error struck, why the result is wrong, and what mends it.

Nothing here judges. Sources of the advice: fsync(2), write(2), close(2), and what was measured of barriers
that failed (FAULT_MODEL.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from crashlab import trace as t
from crashlab.error_judge import SAID
from crashlab.error_points import READ, SHORT
from crashlab.explain import Explanation
from crashlab.live.errors import FOR_EVER, ONCE

if TYPE_CHECKING:
    from crashlab.crash.places import Places
    from crashlab.demands import Problem
    from crashlab.error_points import ErrorState
    from crashlab.judge import Judgement

LIVE, FAILING = "live", "failing"

_DROPPED = Explanation(
    "A barrier failed, and its pages were given up: they are clean in the cache and never written again. "
    "Calling fsync again returns 0 and makes nothing durable.",
    (
        "After a failed fsync trust neither the descriptor nor the file: write the whole value again into a new",
        "file, fsync that one, rename it, fsync the directory; or raise, and let the old value stand.",
    ),
)
_READ = Explanation(
    "The file is there and could not be read; the recovery went on as if it had never been written.",
    ("Take only FileNotFoundError for nothing there. Let every other OSError through to the caller.",),
)
_SPOILED = Explanation(
    "The recovery could not read a file, and removed or rewrote what it could not read; the bytes were whole.",
    ("After a read that failed change nothing: raise, and let the next start read again.",),
)
_SWALLOWED = Explanation(
    "The call was refused, and the save returned all the same: the caller believes in a value that is not there.",
    ("Let the OSError out of save. A save that returns has promised that the value can be loaded.",),
)
_SHORT = Explanation(
    "write() may take fewer bytes than it was given and says how many; the rest was never offered again.",
    ("Write in a loop until every byte is taken, or through a buffered file, and let its errors out.",),
)
_AGAIN = Explanation(
    "What the failed call left behind (a temporary file, a lock, a closed or half-filled buffer) stops the next one.",
    (
        "Give each temporary file a name of its own, or open it with O_TRUNC and without O_EXCL; release locks in",
        "finally; after an error forget the buffer, and open the file anew.",
    ),
)
_HALF = Explanation(
    "The failed append left the beginning of its record in the log, and what is appended next stands behind that.",
    (
        "After a failed append cut the log back to where it ended before (truncate), or do so before the next append;",
        "give each record an end that a reader can check, so that half of one is left out.",
    ),
)
_UNREAD = Explanation(
    "The recovery could not read what is there, and acted outside as if it had been told that there is nothing to "
    "go on from.",
    ("Take only FileNotFoundError for nothing there. Let every other OSError through to the caller.",),
)
_IN_PLACE = Explanation(
    "The file was changed in place before all of the new value was there; after the error neither old nor new is.",
    (
        "Write a temporary file in the same directory, fsync it, rename it over the old one, fsync the directory:",
        "an error at any of these steps leaves the old value untouched.",
    ),
)
_SILENT = Explanation(
    "The program ended because of the error, and nobody can learn from it what went wrong.",
    ("Print what failed and why on standard error before exiting (perror, strerror), and exit with a code.",),
)
_WENT_ON = Explanation(
    "The run met an error in saving and went on as if the save stood.",
    ("Stop at an error of a save: do nothing outside that a resume would not know of.",),
)


def explain_error(judgement: Judgement, state: ErrorState) -> Explanation:
    """Cause and advice for a violation after an error."""
    problem = judgement.problems[0]
    if state.point.variant == READ:
        return _of_a_read(problem)
    if state.loss is not None:
        return _DROPPED
    if problem.expected == (SAID,):
        return _SILENT
    if problem.kind == "stuck" and problem.step == "first" and any(isinstance(op, t.Call) for op in state.trace.ops):
        return _IN_PLACE  # a load that raises, where nothing was acked
    if problem.kind == "stuck" or problem.step in ("second", "third") or _appended_half(state):
        return _HALF if _appended_half(state) and problem.kind != "stuck" else _AGAIN
    if problem.kind in ("duplicate-effect", "missing-effect") or problem.step == LIVE:
        return _WENT_ON
    if state.point.variant == SHORT and _acked_after(state):
        return _SHORT
    return _SWALLOWED if _acked_after(state) else _IN_PLACE


def _of_a_read(problem: Problem) -> Explanation:
    if problem.kind.endswith("-effect"):
        return _UNREAD
    if problem.step == FAILING:
        return _READ
    return _SPOILED if problem.step == "first" and problem.kind != "stuck" else _AGAIN


def _appended_half(state: ErrorState) -> bool:
    """Whether an append had written a part of its record when the rest of that was refused."""
    refused = [op.n for op in state.trace.ops if isinstance(op, t.Refused)]
    calls = [op for op in state.trace.ops[: refused[-1]] if isinstance(op, t.Call)] if refused else []
    own = state.trace.ops[calls[-1].n : refused[-1]] if calls else ()
    return bool(calls) and calls[-1].name == "append" and any(isinstance(op, t.Write) for op in own)


def _acked_after(state: ErrorState) -> bool:
    """Whether the subject promised something after the error."""
    struck = next((op.n for op in state.trace.ops if isinstance(op, t.Refused)), 0)
    return any(isinstance(op, t.Ack) and op.n > struck for op in state.trace.ops[: state.done])


def error_line(state: ErrorState) -> str:
    """What happened, for the line below the ops."""
    point = state.point
    if point.variant == READ:
        return f"from read {state.read} of the recovery on: EIO"
    until = "call had returned" if any(isinstance(op, t.Call) for op in state.trace.ops) else "run had ended"
    lasting = {ONCE: "", FOR_EVER: ", and everything after it"}.get(point.mode, f" until the {until}")
    return f"{point.variant} at op {point.n}{lasting}" + (", then power loss" if state.loss is not None else "")


def error_cause(state: ErrorState) -> str:
    """What makes two findings one: the running line, and whether it was a read, a write or a power loss."""
    if state.point.variant == READ:
        return READ
    refused = next((op for op in state.trace.ops if isinstance(op, t.Refused)), None)
    at = "" if refused is None else refused.at or f"{refused.call} {refused.path}"  # from outside no line is known
    return f"{at} {'lost' if state.loss is not None else ''}"


def error_place(places: Places, state: ErrorState) -> str:
    """Where in the uncrashed run the error struck."""
    if state.point.variant == READ:
        return places.after(state.point.n)
    return places.op(state.point.n)


def error_size(state: ErrorState) -> tuple[int, int]:
    """What makes a case small: an early error, then no power loss after it."""
    return state.point.n, state.read + (1 + state.loss.id.count(",") if state.loss is not None else 0)
