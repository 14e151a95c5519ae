"""Following one process of the subject to its end: its answer, its output, its time limit, what it leaves.

Output pipes belong to the worker and serve every process in turn; what is beyond the newest 64 KiB
is dropped while it comes, so that a subject that prints for ever costs no memory. The end of a
process is seen through a pidfd, not through the end of its pipe: a child of the child may hold that.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from crashlab.recover import sweep

if TYPE_CHECKING:
    from crashlab.recover.wire import Lines, Message

KEPT_BYTES = 1 << 16
_READ_BYTES = 1 << 16
_TICK_S = 0.02  # how often the end of a process is looked for where there is no pidfd (macOS)
_GONE = getattr(select, "POLLRDHUP", 0)
_SHOWN_BYTES = 80

Take = Callable[[dict[str, Any]], None]


class Output:
    """Standard output and standard error of the processes of one worker."""

    def __init__(self) -> None:
        self.readers: dict[int, bytearray] = {}
        self.writers: list[int] = []
        for _ in range(2):
            reader, writer = os.pipe()
            os.set_blocking(reader, False)
            self.readers[reader] = bytearray()
            self.writers.append(writer)

    def read(self, reader: int) -> bool:
        """Take what is there, keep the newest part; False where nothing was there."""
        try:
            part = os.read(reader, _READ_BYTES)
        except BlockingIOError:
            return False
        kept = self.readers[reader]
        kept += part
        del kept[:-KEPT_BYTES]
        return bool(part)

    def finish(self) -> tuple[str, str]:
        """Everything kept of both, as text; the next process starts with nothing."""
        texts = []
        for reader, kept in self.readers.items():
            while self.read(reader):
                pass
            texts.append(kept.decode("utf-8", "replace") if kept else "")
            kept.clear()
        for writer in self.writers:
            os.set_blocking(writer, True)  # the flag is shared with the subject, and asyncio sets it there
        return texts[0], texts[1]


@dataclass
class Ended:
    """How one process ended, and what it said."""

    how: str = ""
    value: dict[str, Any] | None = None
    error: str = ""
    traceback: str = ""
    stdout: str = ""
    stderr: str = ""
    left: tuple[str, ...] = ()
    exit_code: int | None = None
    signal: int | None = None
    watched: dict[str, Any] = field(default_factory=dict)
    modules: list[str] = field(default_factory=list)

    def form(self) -> Message:
        """The JSON form of everything that a step and a recording share."""
        return {name: value for name, value in vars(self).items() if name not in ("watched", "modules")}


class Watch:
    """Follows processes of one worker, one after the other."""

    def __init__(self, control: socket.socket, output: Output) -> None:
        self._control = control.fileno()
        self._output = output
        self._poll = select.poll()
        self._poll.register(self._control, _GONE)  # requests wait in the socket; only its end matters now
        for reader in output.readers:
            self._poll.register(reader, select.POLLIN)

    def follow(
        self, pid: int, reading: int, limit_s: float, timeout_s: float, lines: Lines, take: Take
    ) -> Ended | None:
        """Wait for the end of ``pid``; None where the main process gave up meanwhile.

        ``limit_s`` counts until the process says that it is ready, if it ever does, and ``timeout_s``
        from then on.
        """
        os.set_blocking(reading, False)
        follower = _Follower(pid, reading, lines, take, timeout_s, time.monotonic() + limit_s)
        exit_descriptor = os.pidfd_open(pid) if hasattr(os, "pidfd_open") else -1
        self._poll.register(reading, select.POLLIN)
        if exit_descriptor >= 0:
            self._poll.register(exit_descriptor, select.POLLIN)
        try:
            wanted = self._loop(follower, exit_descriptor)
        finally:
            if follower.open:
                self._poll.unregister(reading)
            if exit_descriptor >= 0:
                self._poll.unregister(exit_descriptor)
                os.close(exit_descriptor)
        if not wanted:
            return None
        ended = follower.finish()
        # No grace after a hang: its children live because it does, so they are ended and are no finding.
        ended.left = sweep.sweep() if ended.how != "hang" else _end_quietly()
        ended.stdout, ended.stderr = self._output.finish()
        return ended

    def _loop(self, follower: _Follower, exit_descriptor: int) -> bool:
        """Until the process has ended (True) or the main process has gone (False)."""
        while True:
            wait_s = follower.deadline - time.monotonic()
            if wait_s <= 0 or follower.lines.too_large:
                follower.end()
                return True
            if exit_descriptor < 0:
                wait_s = min(wait_s, _TICK_S)
            for descriptor, _ in self._poll.poll(wait_s * 1000):
                if descriptor == self._control:
                    return False
                if descriptor == follower.reading:
                    follower.read()
                    if not follower.open:
                        self._poll.unregister(descriptor)
                elif descriptor != exit_descriptor:
                    self._output.read(descriptor)
            if follower.has_ended():
                return True


def _end_quietly() -> tuple[str, ...]:
    sweep.end_all()
    return ()


class _Follower:
    """One process while it is followed."""

    def __init__(self, pid: int, reading: int, lines: Lines, take: Take, timeout_s: float, deadline: float) -> None:
        self.reading = reading
        self.lines = lines
        self.deadline = deadline
        self.open = True
        self._pid = pid
        self._take = take
        self._timeout_s = timeout_s
        self._status: int | None = None
        self._hang = False
        self._ended = Ended()
        self._noise = b""

    def read(self) -> bool:
        """Take what has come through the pipe; False where there was nothing."""
        try:
            data = os.read(self.reading, _READ_BYTES)
        except BlockingIOError:
            return False
        if not data:
            self.open = False
            return False
        for line in self.lines.feed(data):
            self._line(line)
        return True

    def _line(self, line: bytes) -> None:
        try:
            message = json.loads(line)
            if "op" in message:
                self._take(message["op"])
            elif "result" in message:
                self._ended.value = {**message["result"]}
            elif "error" in message:
                told = message["error"]
                self._ended.how, self._ended.traceback = "raised", str(told["traceback"])
                self._ended.error = f"{told['type']}: {told['message']}".removesuffix(": ")
            elif "exit" in message:
                told = message["exit"]["message"]
                self._ended.error = f"SystemExit: {told}" if told else ""
            elif "watched" in message:
                self._ended.watched, self._ended.modules = message["watched"], message["modules"]
            else:
                self.deadline = time.monotonic() + self._timeout_s
        except (ValueError, TypeError, KeyError):
            self._noise = self._noise or line[:_SHOWN_BYTES]

    def has_ended(self) -> bool:
        """Whether the process has ended; it is reaped then."""
        if self._status is None:
            pid, status = os.waitpid(self._pid, os.WNOHANG)
            self._status = status if pid else None
        return self._status is not None

    def end(self) -> None:
        """The time limit, or an answer without end: SIGKILL, and reap."""
        self._hang = not self.lines.too_large
        sweep.kill_group(self._pid)
        os.kill(self._pid, signal.SIGKILL)
        self._status = os.waitpid(self._pid, 0)[1]

    def finish(self) -> Ended:
        """What is left in the pipe, and the word for how it ended."""
        while self.open and not self.lines.too_large and self.read():
            pass
        assert self._status is not None
        ended, code = self._ended, os.waitstatus_to_exitcode(self._status)
        ended.exit_code, ended.signal = (code, None) if code >= 0 else (None, -code)
        if self._hang:
            ended.how, ended.error, ended.exit_code, ended.signal = "hang", "", None, None
        elif self.lines.too_large:
            ended.how, ended.error = "raised", "UsageError: the answer is too large. Pass view=… to compare a part."
        elif self._noise or (self.lines.rest and code >= 0):
            shown = (self._noise or self.lines.rest)[:_SHOWN_BYTES]
            ended.how, ended.error = "raised", f"LabError: the process wrote into the lab's pipe: {shown!r}"
        elif code < 0:
            ended.how = "signal"
        elif ended.how != "raised":
            ended.how = "returned" if code == 0 and ended.value is not None else "exit"
        if ended.how == "exit" and not ended.error:
            ended.error = f"the process ended with exit code {code} " + (
                "after its result" if ended.value is not None else "and gave the lab no result"
            )
        if ended.how != "returned":
            ended.value = None
        return ended
