"""The warm way, from outside: the worker's hold on the one process that recovers state after state.

The process is in :mod:`crashlab.recover.reused`. It is started by a nursery of its own, as every process of the
subject is, and ended when it is slow, has changed, or the worker has no more use for it.
"""

from __future__ import annotations

import select
import socket
import time
from typing import TYPE_CHECKING, Any

from crashlab.recover import reused, wire
from crashlab.recover.child import Job
from crashlab.recover.watch import Ended

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from crashlab.recover.nursery import Nursery
    from crashlab.recover.wire import Message

DOUBTED_AFTER = 4
"""After so many states in a row that had to go elsewhere, only every eighth is tried."""
_TRIED_EVERY = 8
_READ_BYTES = 1 << 18
_NOTHING: dict[str, Any] = {"destroyed": (), "aside": ()}
_GONE = getattr(select, "POLLRDHUP", 0)

assert reused.STATES_IN_ONE_LIFE  # loaded here, once, so that the process itself has nothing to import


class Warm:
    """Recovers states in one process for as long as that process stays as it was.

    ``start`` starts a nursery, given what its process has to close beside what it knows.
    """

    def __init__(self, control: socket.socket, start: Callable[[Callable[[], None]], Nursery]) -> None:
        self._control = control
        self._start = start
        self._life: _Life | None = None
        self._missed = self._asked = 0

    def steps(self, job: Mapping[str, Any], timeout_s: float) -> list[Message] | None:
        """The steps of one state, each as a step in a process of its own is told; None where it must have one.

        ``job`` is a request as :func:`crashlab.recover.reused.serve` takes it, ``timeout_s`` for all steps together.
        """
        self._asked += 1
        if self._missed >= DOUBTED_AFTER and self._asked % _TRIED_EVERY:
            return None
        told = self._told(job, timeout_s)
        self._missed = self._missed + 1 if told is None else 0
        if told is None:
            return None
        names = [step["step"] for step in job["steps"]]
        return [
            {"step": name, **_ended(each).form(), **_NOTHING, "events": each["events"]}
            for name, each in zip(names, told, strict=False)  # after one that raised there are no more
        ]

    def _told(self, job: Mapping[str, Any], timeout_s: float) -> list[Message] | None:
        """Its own words for the steps; None where it changed, ended, is too slow, or sent noise: then it is ended."""
        life = self._life = self._life or _Life(self._start, self._control)
        try:
            answer = life.ask(dict(job), timeout_s)
            steps: list[Message] | None = answer["steps"]
            if not answer["unclean"]:
                return steps
        except (OSError, ValueError, KeyError):
            pass  # told by None
        life.end()
        self._life = None
        return None

    def forget(self) -> None:
        """In a process that was just forked from the worker: close what belongs to the worker."""
        if self._life is not None:
            self._life.forget()


def _ended(told: Mapping[str, Any]) -> Ended:
    """How one step ended; of what it raised there is the text, and no traceback."""
    if "error" in told:
        return Ended(how="raised", error=told["error"], exit_code=1)
    return Ended(how="returned", value=told["value"], exit_code=0)


class _Life:
    """One such process, from its start to its end."""

    def __init__(self, start: Callable[[Callable[[], None]], Nursery], control: socket.socket) -> None:
        self._link, theirs = socket.socketpair()
        self._control = control
        with theirs:
            self._nursery = start(self._link.close)
            self._nursery.start(vars(Job(warm=theirs.fileno())))

    def ask(self, job: Message, timeout_s: float) -> Message:
        """Its answer. Raises OSError where there is none in time, ValueError where it is noise."""
        self._link.settimeout(timeout_s)
        wire.send(self._link, job)
        poll = select.poll()
        for each, events in ((self._link, select.POLLIN), (self._nursery.link, select.POLLIN), (self._control, _GONE)):
            poll.register(each, events)
        deadline, data = time.monotonic() + timeout_s, bytearray()
        while (left_s := deadline - time.monotonic()) > 0:
            ready = {descriptor for descriptor, _ in poll.poll(left_s * 1000)}
            if self._link.fileno() in ready and (part := self._link.recv(_READ_BYTES)):
                data += part
                if (message := wire.whole(data)) is not None:
                    return message
            elif ready:
                raise ConnectionResetError
        raise TimeoutError

    def end(self) -> None:
        """SIGKILL for its nursery and everything below it."""
        self._nursery.end()
        self._link.close()

    def forget(self) -> None:
        """Close what leads to it."""
        self._link.close()
        self._nursery.forget()
