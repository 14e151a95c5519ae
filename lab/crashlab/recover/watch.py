"""Following one process of the subject to its end: its answer, its output, its time limit, what it leaves.

The pipes belong to the worker and serve every process in turn. Of the output the newest 64 KiB are
kept and the rest is dropped while it comes, so that a subject that prints for ever costs no memory.
The end of a process is told by the nursery, not seen from its pipe: a child of it may hold that.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from crashlab.recover import sweep
from crashlab.recover.time_limit import TimeLimit

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterable

    from crashlab.recover.nursery import Nursery
    from crashlab.recover.wire import Lines, Message

KEPT_BYTES = 1 << 16
_READ_BYTES = 1 << 16
_KILL_AGAIN_S = 0.05
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

    def __init__(self, control: socket.socket, output: Output, nursery: Nursery) -> None:
        self._control = control.fileno()
        self._output = output
        self._nursery = nursery
        self._link = -1
        self._poll = select.poll()
        self._poll.register(self._control, _GONE)  # requests wait in the socket; only its end matters now
        for reader in (*output.readers, nursery.answers):
            self._poll.register(reader, select.POLLIN)
        self._hear_nursery()

    def _hear_nursery(self) -> None:
        self._link = self._nursery.link.fileno()
        self._poll.register(self._link, select.POLLIN)

    def follow(self, limit_s: float, timeout_s: float, lines: Lines, take: Take) -> Ended | None:
        """Wait for the end of the process just started; None where the main process gave up meanwhile.

        ``limit_s`` counts until the process says that it is ready, if it ever does, and ``timeout_s``
        from then on.
        """
        follower = Follower(self._nursery.answers, lines, take, timeout_s, time.monotonic() + limit_s)
        if not self._loop(follower):
            return None
        end = self._nursery.ended()
        if end is None:
            self._poll.unregister(self._link)
            self._nursery.close()
            sweep.end_all()
            self._nursery.open()
            self._hear_nursery()
        elif end[1]:
            follower.take(end[1])
        ended = follower.finish(None if end is None else end[0])
        # After a hang nothing is a finding: its children lived because it did.
        ended.left = end[2] if end is not None and ended.how != "hang" else ()
        ended.stdout, ended.stderr = self._output.finish()
        return ended

    def _loop(self, follower: Follower) -> bool:
        """Until the nursery tells the end (True) or the main process has gone (False)."""
        while True:
            wait_s = follower.limit.deadline - time.monotonic()
            if wait_s <= 0 or follower.lines.too_large:
                if not follower.is_over(self._living):
                    continue
                self._kill(follower)
                wait_s = _KILL_AGAIN_S
            told = False
            for descriptor, _ in self._poll.poll(wait_s * 1000):
                if descriptor == self._control:
                    return False
                if descriptor == self._link:
                    told = True
                elif descriptor == follower.reading:
                    follower.read()
                else:
                    self._output.read(descriptor)
            if told:
                return True

    def _living(self) -> list[int]:
        """All processes of the worker except the nursery."""
        return [pid for pid in sweep.descendants(os.getpid()) if pid != self._nursery.pid]

    def _kill(self, follower: Follower) -> None:
        """SIGKILL for all that lives, except the nursery, which tells the end as of any other process."""
        if follower.pid:
            sweep.kill_group(follower.pid)
        for pid in self._living():
            sweep.kill(pid)
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._nursery.pid, signal.SIGCONT)  # a program may have stopped its parent


class Follower:
    """One process while it is followed."""

    def __init__(self, reading: int, lines: Lines, take: Take, timeout_s: float, deadline: float) -> None:
        self.reading = reading
        self.lines = lines
        self.limit = TimeLimit(timeout_s, deadline)
        self.hang = self.ready = False
        self.pid = 0
        self._take = take
        self._ended = Ended()
        self._noise = b""

    def read(self) -> bool:
        """Take what has come through the pipe; False where there was nothing."""
        try:
            data = os.read(self.reading, _READ_BYTES)
        except BlockingIOError:
            return False
        self.take(data)
        return bool(data)

    def take(self, data: bytes) -> None:
        """Take a part of the answer."""
        for line in self.lines.feed(data):
            self._line(line)

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
                self._ended.error = message["exit"]["told"] or (f"SystemExit: {told}" if told else "")
            elif "watched" in message:
                self._ended.watched, self._ended.modules = message["watched"], message["modules"]
            elif "pid" in message:
                self.pid = int(message["pid"])
            elif "ready" in message:
                self.ready = True
                self.limit.begin()
            else:
                self.said(message)
        except (ValueError, TypeError, KeyError):
            self._noise = self._noise or line[:_SHOWN_BYTES]

    def is_over(self, living: Callable[[], Iterable[int]]) -> bool:
        """Whether it must be ended, now that its deadline has come or it said too much; a hang is noted as one."""
        if not self.lines.too_large and not self.hang:
            self.hang = self.limit.is_over(living())
        return self.hang or self.lines.too_large

    def said(self, message: dict[str, Any]) -> None:
        """Something that only some processes say. Raises KeyError for what nobody says."""
        raise KeyError(*message)

    def finish(self, status: int | None) -> Ended:
        """What is left in the pipe, and the word for how it ended; ``status`` None: its parent died too."""
        while self.read():
            pass
        ended = self._ended
        code = -signal.SIGKILL if status is None else os.waitstatus_to_exitcode(status)
        ended.exit_code, ended.signal = (code, None) if code >= 0 else (None, -code)
        if self.hang:
            ended.how, ended.error, ended.exit_code, ended.signal = "hang", "", None, None
        elif self.lines.too_large:
            ended.how, ended.error = "raised", "UsageError: the answer is too large. Pass view=… to compare a part."
        elif self._noise or (self.lines.rest and code >= 0):
            shown = (self._noise or self.lines.rest)[:_SHOWN_BYTES]
            ended.how, ended.error = "raised", f"LabError: the process wrote into the lab's pipe: {shown!r}"
        elif code < 0:
            ended.how = "signal"
            ended.error = "the program killed its parent process" if status is None else ended.error
        elif ended.how != "raised":
            ended.how = "returned" if code == 0 and ended.value is not None else "exit"
        if ended.how == "exit" and not ended.error:
            after = "after its result" if ended.value is not None else "and gave the lab no result"
            ended.error = f"the process ended with exit code {code} {after}"
        if ended.how != "returned":
            ended.value = None
        return ended
