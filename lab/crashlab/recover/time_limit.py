"""When a time limit is over: for a process that had its time, and not for one that the machine held up.

A hang is a finding, so a slow disk, a busy machine or one that stood still must not make one. At the end of its time a
process is given the same time again where it waits for a disk, where it computes but was given less than half of that
time to compute in, or where the lab itself woke up late. One that sleeps then, or has computed all the while, hangs.
All that is given so is at most :data:`SPARED_S`, or three times the limit if that is more.

Assumed, not known: what sleeps at the end of its time would not have come further before. A process that is held up by
another one outside the lab, as a server, is not told from one that waits for ever.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from crashlab.recover import sweep

if TYPE_CHECKING:
    from collections.abc import Iterable

SPARED_S = 30.0
_TIMES = 3
_LATE_S = 0.1
"""The lab wakes up within milliseconds of a deadline, if the machine lets it."""
_FAIR = 0.5


class TimeLimit:
    """The time of one process: ``limit_s`` seconds from ``begin`` on; ``deadline`` as :func:`time.monotonic` counts."""

    def __init__(self, limit_s: float, deadline: float) -> None:
        self.limit_s = limit_s
        self.deadline = deadline
        self._spared_s = 0.0

    def begin(self) -> None:
        """Its time begins now."""
        self.deadline = time.monotonic() + self.limit_s

    def is_over(self, pids: Iterable[int]) -> bool:
        """Whether its time is over, or it was held up; then it gets its time again. Asked once ``deadline`` has come.

        ``pids`` are the processes that count.
        """
        now = time.monotonic()
        if self._spared_s >= max(SPARED_S, _TIMES * self.limit_s) or not self._held_up(now - self.deadline, list(pids)):
            return True
        self._spared_s += max(self.limit_s, _LATE_S)
        self.deadline = now + self.limit_s
        return False

    def _held_up(self, late_s: float, pids: list[int]) -> bool:
        if late_s > _LATE_S or not pids:  # its end is about to be told
            return True
        doing = set[str]().union(*map(sweep.doing, pids))
        return "D" in doing or ("R" in doing and sum(map(sweep.used_s, pids)) < _FAIR * self.limit_s)
