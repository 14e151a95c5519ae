"""The nursery: a process that does nothing but start the subject's processes and wait for their ends.

After a fork every page that the parent writes is copied first. A worker writes many (it makes crash
states, reads answers), so it does not fork itself: the nursery does, and touches almost nothing in
between. It is the parent and the subreaper of everything that a step starts, which makes the proof
that nothing is left one call.

A job arrives on a socket as marshal, which is fast and only ever comes from the lab; the answer of
the subject's process goes by its own pipe, as JSON; here comes back how it ended, and the answer of
a step that needed no process of ours.
"""

from __future__ import annotations

import contextlib
import marshal
import os
import socket
import struct
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

from crashlab import trace as t
from crashlab.crash.states import CrashState
from crashlab.recover import sweep
from crashlab.tree import Tree

if TYPE_CHECKING:
    from types import FrameType

    from crashlab.recover.watch import Output

Launch = Callable[[bytes], tuple[int, bytes]]
"""Do a job in marshal form: the wait status of the process that did it, once it has ended, and the JSON lines of its
answer where they did not go through the pipe."""

LaunchFor = Callable[[int, "Output", socket.socket], Launch]
"""Makes a Launch, given the descriptor for answers, the output pipes, and the socket that no child may keep."""

_JOB = struct.Struct("=Q")
_END = struct.Struct("=iII")
_READ_BYTES = 1 << 16
_TELLING = {"acked", "trace", "tree"}
"""Of the requests in these frames."""


class Nursery:
    """The worker's side: start a job, hear its end; made again where the subject has killed it."""

    def __init__(self, launch_for: LaunchFor, output: Output, unwanted: Callable[[], None]) -> None:
        self._launch_for = launch_for
        self._output = output
        self._unwanted = unwanted
        self.answers, self._answers_in = os.pipe()
        os.set_blocking(self.answers, False)
        self.link: socket.socket
        self.pid = 0
        self.open()

    def open(self) -> None:
        """Fork a nursery."""
        self.link, theirs = socket.socketpair()
        parent = os.getpid()
        self.pid = os.fork()
        if self.pid:
            theirs.close()
            return
        sweep.die_with_parent(parent)
        _forget_the_run()
        self.link.close()
        self._unwanted()
        os.close(self.answers)
        for reader in self._output.readers:
            os.close(reader)
        for standard, writer in enumerate(self._output.writers, start=1):
            os.dup2(writer, standard)  # here and not in each child: a child inherits both as they are
        _nurse(theirs, self._launch_for(self._answers_in, self._output, theirs))

    def start(self, job: dict[str, Any]) -> None:
        """Start a process for ``job``."""
        data = marshal.dumps(job)
        self.link.sendall(_JOB.pack(len(data)) + data)

    def ended(self) -> tuple[int, bytes, tuple[str, ...]] | None:
        """Status and lines of a :data:`Launch`, and what lived on after it; None where the nursery died itself."""
        try:
            head = self.link.recv(_END.size, socket.MSG_WAITALL)
            if len(head) < _END.size:
                return None
            status, told, left = _END.unpack(head)
            data = self.link.recv(told + left, socket.MSG_WAITALL) if told + left else b""
        except ConnectionError:
            return None
        if len(data) < told + left:
            return None
        return status, data[:told], tuple(marshal.loads(data[told:])) if left else ()  # noqa: S302 - the lab's own

    def close(self) -> None:
        """Forget a nursery that has died."""
        self.link.close()

    def forget(self) -> None:
        """Close all that belongs to it here; it cannot be opened again."""
        self.link.close()
        for descriptor in (self.answers, self._answers_in):
            os.close(descriptor)

    def end(self) -> None:
        """SIGKILL for it and everything below it."""
        for pid in (*sweep.descendants(self.pid), self.pid):
            sweep.kill(pid)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.pid, 0)
        self.forget()


def _forget_the_run() -> None:
    """Empty, in this process alone, what the worker knows of the recorded run: it stands in the frames above.

    The subject's processes are forks of this one, and could look for the right answer there.
    """
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - the frames that this process was forked with
    while frame is not None:
        if frame.f_code.co_name == "<module>":  # its names are those of the module
            frame = frame.f_back
            continue
        for value in list(frame.f_locals.values()):
            if isinstance(value, (t.Trace, CrashState)):
                _emptied(value)
            elif isinstance(value, dict):
                for name in _TELLING & value.keys():
                    del value[name]
            for held in list(getattr(value, "__dict__", {}).values()):
                if isinstance(held, (t.Trace, CrashState)):
                    _emptied(held)
        frame = frame.f_back


def _emptied(value: t.Trace | CrashState) -> None:
    if isinstance(value, CrashState):
        _emptied(value.trace)
        object.__setattr__(value, "tree", Tree({}))
        return
    object.__setattr__(value, "ops", ())
    object.__setattr__(value, "base", Tree({}))


def _nurse(link: socket.socket, launch: Launch) -> NoReturn:
    try:
        sweep.become_subreaper()
        while job := _next_job(link):
            status, told = launch(job)
            left = b"" if sweep.nothing_lives() else marshal.dumps(sweep.sweep())
            link.sendall(_END.pack(status, len(told), len(left)) + told + left)
    except ConnectionError:
        pass  # the worker has gone, and nobody waits for an answer
    finally:
        os._exit(0)


def _next_job(link: socket.socket) -> bytes:
    data = link.recv(_READ_BYTES)
    if len(data) < _JOB.size:
        return b""
    (size,) = _JOB.unpack_from(data)
    if len(data) == _JOB.size + size:
        return data[_JOB.size :]
    rest = link.recv(size - len(data) + _JOB.size, socket.MSG_WAITALL)
    return data[_JOB.size :] + rest
