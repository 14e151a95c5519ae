"""The kernel's notices of calls: each call that may change a file waits until the lab says what becomes of it.

A seccomp filter of the kind ``SECCOMP_RET_USER_NOTIF`` stops a process before such a call and tells the holder of the
filter's descriptor, which answers with "go on", an error, or a result: seccomp_unotify(2). "Go on" came with Linux
5.5, pidfd_getfd(2), for short writes, with 5.6. The program's launcher sets the filter up on itself, so that every
descendant has it, and hands the descriptor over.

Measured with strace 6.1 on Linux 6.18: strace's stop at the entry of a call comes before the filter, so strace shows
such calls as ever, with the errno. With ``--seccomp-bpf`` it would not: of two filters the notice wins over the stop.
strace's own injection cannot do it: it counts per process and call, so ``when=3+`` of ``write`` also silences the
words on standard error, pipes, and the events.

The call numbers are those of the kernel's tables; of aarch64 they were not tried on such a machine.
"""

from __future__ import annotations

import array
import contextlib
import ctypes
import fcntl
import os
import platform
import re
import socket
import struct
import subprocess
import sys
from dataclasses import dataclass

Numbers = dict[str, tuple[int | None, int | None]]
"""Of calls, by name, their numbers on x86_64 and on aarch64; None where there is no such call."""

NUMBERS: Numbers = {
    "write": (1, 64),
    "writev": (20, 66),
    "pwrite64": (18, 68),
    "pwritev": (296, 70),
    "pwritev2": (328, 287),
    "sendfile": (40, 71),
    "copy_file_range": (326, 285),
    "splice": (275, 76),
    "fallocate": (285, 47),
    "open": (2, None),
    "openat": (257, 56),
    "openat2": (437, 437),
    "creat": (85, None),
    "fsync": (74, 82),
    "fdatasync": (75, 83),
    "mkdir": (83, None),
    "mkdirat": (258, 34),
    "mknod": (133, None),
    "mknodat": (259, 33),
    "symlink": (88, None),
    "symlinkat": (266, 36),
    "link": (86, None),
    "linkat": (265, 37),
    "rename": (82, None),
    "renameat": (264, 38),
    "renameat2": (316, 276),
    "unlink": (87, None),
    "unlinkat": (263, 35),
    "rmdir": (84, None),
    "truncate": (76, 45),
    "ftruncate": (77, 46),
    "chmod": (90, None),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "utimensat": (280, 88),
    "utimes": (235, None),
    "futimesat": (261, None),
    "setxattr": (188, 5),
    "lsetxattr": (189, 6),
    "fsetxattr": (190, 7),
    "removexattr": (197, 14),
    "lremovexattr": (198, 15),
    "fremovexattr": (199, 16),
}
"""The calls that may change a file and can be refused."""

_MACHINES = {"x86_64": (0, 0xC000003E, 317), "aarch64": (1, 0xC00000B7, 277)}
_OLDEST = (5, 6)
_PIDFD_GETFD = 438
_RECEIVE, _SEND, _IS_VALID = 0xC0502100, 0xC0182101, 0x40082102
_GO_ON = 1
_NOTICE = struct.Struct("QIIiIQ6Q")
_ANSWER = struct.Struct("QqiI")
_LOAD_BYTES, _EQUAL, _ANY_BIT, _RETURN = 0x20, 0x15, 0x45, 0x06
_NUMBER_AT, _ARCHITECTURE_AT, _ARGUMENTS_AT, _ARGUMENT_BYTES = 0, 4, 16, 8
CHANGING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
"""Flags of which an open has one at least where it may change something, or opens what is to be changed."""
_FLAGS_OF = {"open": 1, "openat": 2}
_ALLOW, _NOTIFY = 0x7FFF0000, 0x7FC00000

_PREPARE = """
import ctypes as c, os, struct
def notices():
    code = bytes.fromhex("{code}"); held = c.create_string_buffer(code, len(code))
    head = c.create_string_buffer(struct.pack("HxxxxxxP", len(code) // 8, c.addressof(held)))
    libc = c.CDLL(None, use_errno=True)
    libc.prctl(38, 1, 0, 0, 0)
    for flags in (8 | 32, 8):
        found = libc.syscall({seccomp}, 1, flags, head)
        if found >= 0: return found
    raise SystemExit("seccomp: " + os.strerror(c.get_errno()))
"""
"""Defines ``notices()``: a new listener (8) whose waiting calls no signal ends (32, since Linux 5.19), if possible."""

_HAND_OVER = """
import socket
with socket.socket(fileno=int(os.environ.pop("CRASHLAB_NOTICES"))) as way:
    socket.send_fds(way, [b"n"], [notices()])
"""


def available() -> str:
    """Why the kernel gives no notices here; "" where it does."""
    if platform.machine() not in _MACHINES:
        return f"calls are refused on {' and '.join(_MACHINES)} only; this machine is {platform.machine()}"
    release = tuple(int(part) for part in re.findall(r"\d+", platform.release())[:2])
    if release < _OLDEST:
        return f"calls are refused on Linux {_OLDEST[0]}.{_OLDEST[1]} or newer; this is {platform.release()}"
    argv = [sys.executable, "-I", "-S", "-c", _prepare(NUMBERS) + "notices()"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else f"the kernel does not let calls be refused here ({done.stderr.strip()})"


def launcher(calls: Numbers = NUMBERS, *, reads: bool = False) -> str:
    """Code for the launcher: sets the filter up and hands it over through ``CRASHLAB_NOTICES``, a socket.

    With ``reads`` an open waits also where it is only to read.
    """
    return _prepare(calls, reads=reads) + _HAND_OVER


def _prepare(calls: Numbers, *, reads: bool = False) -> str:
    code = b"".join(struct.pack("HBBI", *step) for step in _steps(calls, reads=reads))
    return _PREPARE.format(code=code.hex(), seccomp=_MACHINES[platform.machine()][2])


def _steps(calls: Numbers, *, reads: bool) -> list[tuple[int, int, int, int]]:
    """The filter: the calls that wait.

    An interpreter opens hundreds of files to read them while it starts. Each wait is two changes of the process that
    runs, so without ``reads`` these go on at once.
    """
    column, architecture, _ = _MACHINES[platform.machine()]
    numbers = {name: each[column] for name, each in calls.items() if each[column] is not None}
    opens = [(numbers.pop(name), flags) for name, flags in _FLAGS_OF.items() if name in numbers and not reads]
    steps = [(_LOAD_BYTES, 0, 0, _ARCHITECTURE_AT), (_EQUAL, 1, 0, architecture), (_RETURN, 0, 0, _ALLOW)]
    steps.append((_LOAD_BYTES, 0, 0, _NUMBER_AT))
    left = 3 * len(opens) + len(numbers)  # so many steps until the two that decide
    for number, flags in opens:
        left -= 3
        steps.append((_EQUAL, 0, 2, number or 0))
        steps.append((_LOAD_BYTES, 0, 0, _ARGUMENTS_AT + _ARGUMENT_BYTES * flags))  # its lower half: little-endian
        steps.append((_ANY_BIT, left + 1, left, CHANGING))
    for number in numbers.values():
        left -= 1
        steps.append((_EQUAL, left + 1, 0, number or 0))
    return [*steps, (_RETURN, 0, 0, _ALLOW), (_RETURN, 0, 0, _NOTIFY)]


@dataclass(frozen=True, slots=True)
class Notice:
    """A process or thread ``pid`` is about to make a call; ``args`` are its registers."""

    id: int
    pid: int
    name: str
    args: tuple[int, ...]

    def number(self, position: int) -> int:
        """A descriptor, or ``AT_FDCWD``: the lower 32 bits, signed."""
        return ctypes.c_int32(self.args[position] & 0xFFFFFFFF).value

    def memory(self, address: int, size: int) -> bytes:
        """Bytes of the process. Raises OSError where there are none."""
        with open(f"/proc/{self.pid}/mem", "rb", buffering=0) as file:
            return os.pread(file.fileno(), size, address)

    def text(self, position: int) -> str:
        """The text, mostly a path, that an argument points to."""
        address, found = self.args[position], b""
        while b"\0" not in found and len(found) < 1 << 16:
            at = address + len(found)
            found += self.memory(at, 4096 - at % 4096)  # what follows in the next page may not be there
        return os.fsdecode(found.partition(b"\0")[0])

    def vectors(self, position: int, count: int) -> list[tuple[int, int]]:
        """Address and size of the pieces of a ``writev``."""
        return list(struct.iter_unpack("QQ", self.memory(self.args[position], 16 * count)))

    def opened(self, position: int) -> int:
        """The very open file of the process, with its position, as a descriptor of ours. Raises OSError."""
        with open(f"/proc/{self.pid}/status", encoding="utf-8", errors="replace") as file:
            group = next(int(line.split()[1]) for line in file if line.startswith("Tgid:"))
        process = os.pidfd_open(group)
        try:
            libc = ctypes.CDLL(None, use_errno=True)
            found = int(libc.syscall(_PIDFD_GETFD, process, self.number(position), 0))
        finally:
            os.close(process)
        if found < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        return found


class Notices:
    """The holder's side: ``socket`` goes to the launcher, :attr:`descriptor` is to be polled."""

    def __init__(self, calls: Numbers = NUMBERS) -> None:
        self._ours, self.theirs = socket.socketpair()
        self._listener: int | None = None
        column = _MACHINES[platform.machine()][0]
        self._names = {each[column]: name for name, each in calls.items()}

    @property
    def descriptor(self) -> int:
        """What to poll: first the socket, until the listener has come."""
        return self._ours.fileno() if self._listener is None else self._listener

    @property
    def listening(self) -> bool:
        """Whether the listener has come."""
        return self._listener is not None

    def started(self) -> None:
        """The launcher has its end."""
        self.theirs.close()

    def take(self) -> Notice | None:
        """The next notice. None where there is none: the listener has come instead, or the process has died."""
        if self._listener is None:
            size = array.array("i").itemsize
            _, found, _, _ = socket.recv_fds(self._ours, 1, size)
            self._listener = found[0] if found else None
            return None
        buffer = bytearray(_NOTICE.size)
        try:
            fcntl.ioctl(self._listener, _RECEIVE, buffer, True)  # noqa: FBT003 - positional in the standard library
        except FileNotFoundError:
            return None
        number, pid, _, call, _, _, *args = _NOTICE.unpack(buffer)
        return Notice(number, pid, self._names[call], tuple(args))

    def is_valid(self, notice: Notice) -> bool:
        """Whether the process still waits; only then what was read of it is to be believed."""
        assert self._listener is not None
        try:
            fcntl.ioctl(self._listener, _IS_VALID, struct.pack("Q", notice.id))
        except FileNotFoundError:
            return False
        return True

    def answer(self, notice: Notice, *, error: int | None = None, result: int | None = None) -> None:
        """Let the call go on; or let it fail with ``error``; or let it return ``result`` without being made."""
        assert self._listener is not None
        goes_on = error is None and result is None
        form = _ANSWER.pack(notice.id, result or 0, -(error or 0), _GO_ON if goes_on else 0)
        with contextlib.suppress(FileNotFoundError):  # it was killed meanwhile
            fcntl.ioctl(self._listener, _SEND, form)

    def close(self) -> None:
        """No more notices are wanted; calls that still wait fail."""
        self._ours.close()
        self.theirs.close()
        if self._listener is not None:
            os.close(self._listener)
            self._listener = None
