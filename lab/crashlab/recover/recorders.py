"""Several recorded runs at once: each worker has a place of its own, so that they do not meet.

A run that is watched from outside waits most of its time, for the watcher or for the system to change between the
two: two at once take little longer than one.
"""

from __future__ import annotations

import time
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable

    from crashlab.observation import RawRecording
    from crashlab.recover.wire import Channel, Message

_STOP_LIMIT_S = 10.0


class Recorders:
    """Recording workers that are kept; ``heard`` reads one recording to its end."""

    def __init__(self, channels: list[Channel], heard: Callable[[Channel], RawRecording]) -> None:
        self._idle, self._heard, self._whole = channels, heard, len(channels)

    @property
    def whole(self) -> bool:
        """Whether all workers are there still: one whose recording nobody read to its end is gone."""
        return len(self._idle) == self._whole

    def record(self, requests: Iterable[Message]) -> Generator[RawRecording, None, None]:
        """The recordings in the order of the requests, which are taken from their source as workers get free.

        Raises LabError where a worker dies.
        """
        source = iter(requests)
        running: deque[Channel] = deque()
        try:
            while True:
                while self._idle and (request := next(source, None)) is not None:
                    running.append(self._idle.pop())
                    running[-1].put({"record": request})
                if not running:
                    return
                recording = self._heard(running[0])
                self._idle.append(running.popleft())
                yield recording
        finally:
            _end(running)

    def close(self) -> None:
        """Forget them; each ends itself when its connection is closed."""
        for channel in self._idle:
            channel.close()
        self._idle.clear()


def _end(channels: Iterable[Channel]) -> None:
    """End workers in the middle of a run, which nobody has a use for any more; returns when they have swept."""
    for channel in channels:
        channel.say_goodbye()
    deadline = time.monotonic() + _STOP_LIMIT_S
    for channel in channels:
        channel.wait_for_end(deadline)
        channel.close()
