"""The live runs under errors, several at once; of a program with mapped files each is held long enough.

Stores into a mapped file are seen only while the program stands (:mod:`crashlab.record.strace.mapped`). A run in which
they were looked at too late is made again and held longer, as the uncrashed one is.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from crashlab.observation import readable_run
from crashlab.record.strace.mapped import HOLD_US
from crashlab.reference import LONGEST_HOLD_US

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from crashlab.error_points import ErrorPoint
    from crashlab.observation import RawRecording
    from crashlab.recover.host import Host, Way


def live_runs(
    host: Host, points: Iterable[ErrorPoint], *, expected: Any, timeout_s: float
) -> Iterator[tuple[ErrorPoint, RawRecording]]:
    """One run under each of ``points``, in their order; ``expected`` is the uncrashed end, for the subject's check."""
    asked: deque[ErrorPoint] = deque()

    def ways() -> Iterator[Way]:
        for point in points:
            asked.append(point)
            yield {"error": point.form, "expected": expected}

    for first in host.record_many(ways(), timeout_s=timeout_s):
        point, recording = asked.popleft(), first
        while host.traced is not None and (recording.late or recording.mapped) and (longer := _longer(host)):
            host.traced = {"hold_us": longer}
            recording = host.record(error=point.form, expected=expected, timeout_s=timeout_s)
        yield point, readable_run(recording)


def _longer(host: Host) -> int:
    """For how long the calls of this and of all later runs are held, in microseconds; 0 where longer tells no more."""
    held_us = int((host.traced or {}).get("hold_us", 0))
    return 0 if held_us >= LONGEST_HOLD_US else max(HOLD_US, 2 * held_us)
