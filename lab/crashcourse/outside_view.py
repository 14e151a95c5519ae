"""Whether strace sees the same run as the recorder does, which shares a process with the submission.

The recorder of Python's file functions can be lied to from inside: it may be told of a barrier that never was. The
same run is recorded once more by its system calls, and what was done to which file is compared: made, renamed,
removed, synced, written. How many writes there were in a row is not: that may depend on the recorder. Without strace
nothing is compared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from crashlab import trace as t
from crashlab.errors import ToolMissing
from crashlab.record.strace.tool import available
from crashlab.recover import travel
from crashlab.recover.host import Host

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crashlab.subject import AnySubject

_LIMIT_FACTOR = 6
BARRIERS = tuple(kind.KIND for kind in t.BARRIERS)
Step = tuple[str, str]
"""What was done, and to which path; a path that only one run has counts by when it came."""


def difference(subject: AnySubject) -> str:
    """The first step in which what strace saw differs; nothing where it agrees, or where no two runs do."""
    try:
        available()
    except ToolMissing:
        return ""
    with Host(travel.pack(subject), only_records=True) as host:
        limit_s = float(host.description["timeout_s"]) * _LIMIT_FACTOR

        def steps(*, traced: bool) -> list[Step]:
            host.traced = {} if traced else None
            return _steps(host.record(timeout_s=limit_s).ops)

        inside, outside = steps(traced=False), steps(traced=True)
        told = _told(inside, outside)
        if not told:
            return ""
        inside_again, outside_again = steps(traced=False), steps(traced=True)
        if _told(inside, inside_again) or _told(outside, outside_again):
            return _other_barriers((inside, inside_again), (outside, outside_again))
        return f"strace sees another run than the recorder: {told}"


def _other_barriers(inside: Sequence[Sequence[Step]], outside: Sequence[Sequence[Step]]) -> str:
    """Where a program does something else each time, there must still be as many barriers with the recorder as without.

    Nothing where it asks for another number each time.
    """
    numbers = [{sum(kind in BARRIERS for kind, _ in steps) for steps in runs} for runs in (inside, outside)]
    if numbers[0] == numbers[1] or any(len(each) > 1 for each in numbers):
        return ""
    (recorded,), (plain,) = numbers
    return f"the recorder sees {recorded} barriers, and {plain} reach the kernel without it"


def _steps(ops: Sequence[t.Op]) -> list[Step]:
    """What was done to files, several writes to one in a row as one."""
    seen: dict[str, str] = {}
    found: list[Step] = []
    for op in ops:
        if isinstance(op, t.EVENTS):
            continue
        path = getattr(op, "path", "")
        step = op.KIND, seen.setdefault(path, f"file {len(seen) + 1}")
        if not found or found[-1] != step or op.KIND != t.Write.KIND:
            found.append(step)
    return found


def _told(inside: Sequence[Step], outside: Sequence[Step]) -> str:
    """In words; paths are told by the order in which they came."""
    for number, (one, other) in enumerate(zip(inside, outside, strict=False), 1):
        if one != other:
            return f"step {number} is {one[0]} of {one[1]} inside and {other[0]} of {other[1]} outside"
    if len(inside) != len(outside):
        return f"{len(inside)} steps were seen inside and {len(outside)} outside"
    return ""
