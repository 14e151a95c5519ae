"""Reads that fail for real in a program of any language: from a chosen read of its recovery on, it meets EIO.

A read is an opening for reading, a read of an open file, or a listing, of what lies below the root, in the program and
in every process that it starts; they are numbered from 1 in the order in which they happen. Not reached: ``stat``
and reads through ``mmap``, of which only the opening is met.
"""

from __future__ import annotations

import errno
import os
import select
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

from crashlab.record.strace.notices import Notice, Notices, Numbers, launcher

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

NUMBERS: Numbers = {
    "read": (0, 63),
    "readv": (19, 65),
    "pread64": (17, 67),
    "preadv": (295, 69),
    "preadv2": (327, 286),
    "getdents": (78, None),
    "getdents64": (217, 61),
    "open": (2, None),
    "openat": (257, 56),
    "openat2": (437, 437),
}
"""As in :mod:`crashlab.record.strace.notices`."""

_AT_FDCWD = -100
_CHANGES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
_START = """
import os, signal, sys
for number in (signal.SIGPIPE, signal.SIGXFSZ): signal.signal(number, signal.SIG_DFL)
{notices}
environment = dict(os.environb)
if sys.argv[1] == "0": environment.pop(b"LC_CTYPE", None)
os.execve(sys.argv[2], sys.argv[3:], environment)
"""


class ProgramReads:
    """Counts the reads below ``root``; read ``at`` and all later ones fail. 0 fails none."""

    def __init__(self, root: str, at: int) -> None:
        self.count = 0
        self.failed = 0
        self._root, self._at = os.path.realpath(root) + os.sep, at

    def run(self, argv: Sequence[str], env: Mapping[str, str]) -> int:
        """Run a program to its end. Returns its exit code, or its signal as a negative number.

        Raises OSError where there is no such program.
        """
        path = shutil.which(argv[0], path=env.get("PATH"))
        if path is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        notices = Notices(NUMBERS)
        code = _START.format(notices=launcher(NUMBERS, reads=True))
        given = {**env, "CRASHLAB_NOTICES": str(notices.theirs.fileno())}
        start = [sys.executable, "-I", "-S", "-c", code, str(int("LC_CTYPE" in env)), path, *argv]
        try:
            process = subprocess.Popen(start, stdin=subprocess.DEVNULL, env=given, pass_fds=[notices.theirs.fileno()])
            notices.started()
            self._follow(process, notices)
            return process.wait()
        finally:
            notices.close()

    def _follow(self, process: subprocess.Popen[bytes], notices: Notices) -> None:
        """Answer until the program has ended."""
        poll, ended = select.poll(), os.pidfd_open(process.pid)
        try:
            poll.register(ended, select.POLLIN)
            poll.register(notices.descriptor, select.POLLIN)
            while True:
                before = notices.descriptor
                ready = dict(poll.poll())
                notice = None
                if ready.get(before, 0) & select.POLLIN:
                    notice = notices.take()
                elif before in ready:
                    poll.unregister(before)
                elif ended in ready:
                    return
                if notices.descriptor != before:
                    poll.unregister(before)
                    poll.register(notices.descriptor, select.POLLIN)
                elif before in ready and not notices.listening:
                    poll.unregister(before)
                if notice is not None:
                    self._decide(notice, notices)
        finally:
            os.close(ended)

    def _decide(self, notice: Notice, notices: Notices) -> None:
        is_read = self._is_below(notice) and notices.is_valid(notice)
        self.count += is_read
        fails = is_read and self._at != 0 and self.count >= self._at
        self.failed += fails
        notices.answer(notice, error=errno.EIO if fails else None)

    def _is_below(self, notice: Notice) -> bool:
        try:
            return (_place(notice) + os.sep).startswith(self._root)
        except OSError:
            return False  # the process has ended, or its call fails by itself


def _place(notice: Notice) -> str:
    """What a call reads; "" for an opening that is not for reading."""
    proc = f"/proc/{notice.pid}"
    if not notice.name.startswith("open"):
        return os.readlink(f"{proc}/fd/{notice.number(0)}")
    if notice.name == "open":
        start, position, flags = f"{proc}/cwd", 0, notice.args[1]
    else:
        number = notice.number(0)
        start, position = (f"{proc}/cwd" if number == _AT_FDCWD else f"{proc}/fd/{number}"), 1
        flags = notice.args[2]
        if notice.name == "openat2":
            flags = int.from_bytes(notice.memory(flags, 8), "little")
    if flags & _CHANGES:
        return ""
    text = notice.text(position)
    return os.path.realpath(text if text.startswith("/") else os.path.join(os.readlink(start), text))
