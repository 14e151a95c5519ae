"""Which errors can be tried, above all on programs that are watched from outside, and what is said of the others."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from crashlab.error_points import is_nameless
from crashlab.errors import UsageError
from crashlab.record.strace.notices import available
from crashlab.record.strace.refusing import can_refuse
from crashlab.report.model import UnmeasuredReason

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from crashlab import trace as t
    from crashlab.error_points import ErrorPoint

_NAMELESS = "calls on a file without a name (O_TMPFILE)"
NO_READS = (
    "error: EIO-read is not tried on a program that is recorded from outside; its recovery read all that it asked for."
)


def missing() -> UnmeasuredReason | None:
    """Why no call of a program can be made to fail on this system; None where it can."""
    why = available()
    if not why:
        return None
    advice = "Leave error out of the faults, or record with recorder='python' if its own code does all writes."
    return UnmeasuredReason(code="tool-missing", detail=f"error: {why}.", next=advice)


def possible(
    points: Iterable[ErrorPoint], trace: t.Trace, origins: Sequence[tuple[int, str, int]] = (), *, outside: bool = True
) -> tuple[list[ErrorPoint], list[str]]:
    """The errors whose call can be refused, and a note on the ops that are left out.

    ``origins`` say of each op by which call of which process it was made. What no call made (a store into a mapped
    file), what a call made that cannot be refused, the second op of one call, and what was done to a file without a
    name are left out; of a run that is not watched from ``outside`` only the last.
    """
    left_out: Counter[str] = Counter()
    kept, seen = [], set()
    for point in points:
        why = _NAMELESS if is_nameless(trace.op(point.n)) else _why_not(point.n, origins)
        if not why:
            kept.append(point)
        elif point.n not in seen:
            left_out[why] += 1
        seen.add(point.n)
    if not left_out:
        return kept, []
    told = ", ".join(f"{count} made by {why}" for why, count in left_out.most_common())
    where = "from outside" if outside else "here"
    return kept, [f"error: {left_out.total()} of {len(trace.ops)} ops cannot be made to fail {where}: {told}."]


def demand_possible(point: ErrorPoint, origins: Sequence[tuple[int, str, int]]) -> None:
    """Raise UsageError where the call of this one error, which was asked for by its id, cannot be refused."""
    if why := _why_not(point.n, origins):
        text = f"{point.id}: op {point.n} cannot be made to fail from outside: it is made by {why}"
        raise UsageError(text)


def _why_not(n: int, origins: Sequence[tuple[int, str, int]]) -> str:
    if n > len(origins):
        return ""  # a stored run keeps no origins: then it is found out by trying
    _, name, _ = origins[n - 1]
    if not name:
        return "a store into a mapped file"
    if not can_refuse(name):
        return name
    return f"a part of one {name}" if n > 1 and origins[n - 2] == origins[n - 1] else ""
