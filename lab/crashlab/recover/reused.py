"""One process that recovers many crash states, one after the other: the warm way, from inside.

It saves the fork of each step, which costs many times what a small recovery does. What it cannot give
is a process without a past, so it answers only for states on which every step returned or raised an Exception, and
after which it looks as it did at its start: the same threads, descriptors, working directory, umask, environment
and functions to call at the end, and no child. Anything else it tells, and ends; the state is then recovered
in processes of its own. What stays in memory is not seen here: the worker compares a sample of states
with processes of their own (:mod:`crashlab.recover.worker`).
"""

from __future__ import annotations

import atexit
import os
import socket
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn, Self

from crashlab import trace as t
from crashlab import workload
from crashlab.lab import Lab
from crashlab.recover import sweep, wire
from crashlab.recover.child import JUDGED, message_of

if TYPE_CHECKING:
    from crashlab.recover.child import Prepared
    from crashlab.recover.wire import Message

STATES_IN_ONE_LIFE = 1_000
"""A process that has recovered so many states is replaced, whatever it looks like."""


@dataclass(frozen=True)
class Shape:
    """What shows of a process between two states, and has to stay as it was."""

    descriptors: tuple[str, ...]
    threads: int
    directory: str
    umask: int
    environment: dict[Any, Any]
    at_end: int

    @classmethod
    def now(cls) -> Self:
        """That of this process. Raises OSError where its working directory is gone."""
        umask = os.umask(0)
        os.umask(umask)
        return cls(
            descriptors=tuple(os.listdir("/proc/self/fd")),
            threads=len(os.listdir("/proc/self/task")),
            directory=os.getcwd(),
            umask=umask,
            environment=os.environ.copy(),
            at_end=atexit._ncallbacks(),  # noqa: SLF001 - it has no public name
        )

    def changed(self) -> str:
        """What is otherwise now; "" where nothing is."""
        if not sweep.nothing_lives():
            return "a child process lives on"
        try:
            now = type(self).now()
        except OSError:
            return "directory"
        return next((name for name, value in vars(self).items() if vars(now)[name] != value), "")


def serve(prepared: Prepared, descriptor: int) -> NoReturn:
    """Recover what comes over this socket until it is closed or something of this process has changed.

    A request has ``steps``, ``effects``, ``acked`` and ``expected`` as a job has. The answer is
    ``{"steps": [{"value": …, "events": […]}, …], "unclean": why}``, a step that raised with ``error``, its text, in
    place of the value; ``steps`` is None where one ended in any other way.
    """
    try:
        nothing = os.open(os.devnull, os.O_RDWR)
        for standard in (1, 2):
            os.dup2(nothing, standard)  # what a clean recovery prints is shown nowhere
        link = socket.socket(fileno=descriptor)
        sweep.become_subreaper()
        before = Shape.now()
        for _ in range(STATES_IN_ONE_LIFE):
            request = wire.receive(link)
            if request is None:
                break
            steps = _recovered(prepared, request)
            unclean = before.changed()
            wire.send(link, {"steps": steps, "unclean": unclean})
            if unclean:
                break
    finally:
        os._exit(0)  # the worker sees the end, and takes the state elsewhere


def _recovered(prepared: Prepared, request: Message) -> list[Message] | None:
    """The steps on one state, up to the first that raised; None where one ended in any other way."""
    done = [op for form in request["effects"] if isinstance(op := t.op_from_json(form), t.Effect)]
    steps: list[Message] = []
    for step in request["steps"]:
        events = _Events()
        lab = Lab(prepared.directory, events.take, Lab.history(done), list(request["acked"]), request["expected"])
        try:
            told: Message = {"value": workload.recover(prepared.subject, lab, step)}
        except Exception as error:  # noqa: BLE001 - a refusal is an answer
            told = {"error": f"{type(error).__name__}: {message_of(error)}".removesuffix(": ")}
        except BaseException:  # noqa: BLE001 - it is met again in a process of its own, and told there
            return None
        steps.append({**told, "events": [t.op_to_json(op) for op in events.told]})
        done.extend(op for op in events.told if isinstance(op, t.Effect))
        if "error" in told:
            break
    return steps


class _Events:
    """The events of one step, numbered."""

    def __init__(self) -> None:
        self.told: list[t.Op] = []
        self._lock = threading.Lock()

    def take(self, event_type: type[t.Op], **fields: Any) -> None:
        """One more: a sink for :class:`crashlab.lab.Lab`."""
        if event_type in JUDGED:
            with self._lock:
                self.told.append(event_type(n=len(self.told) + 1, time_ns=time.time_ns(), **fields))
