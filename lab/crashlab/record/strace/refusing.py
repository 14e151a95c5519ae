"""Calls of a program that fail: each one that would change something below the root is put to a gate.

The gate is the one that Python code meets (:class:`crashlab.record.watch.Striker`), asked with the same numbers: when
a call waits, all that this process did before has been told, so that the call would be the next op. What is refused
was never made by the kernel: the files stay as they were. Of a barrier that fails so, the pages are in truth still
dirty; that they are given up, as after a real failure, is what :class:`crashlab.trace.Fsync` says with ``failed``, and
what a later power loss shows.

Only calls that would succeed are put to the gate: a ``mkdir`` of what is there fails by itself. Not refused:
``msync`` and stores into mapped files, ``sync``, ``syncfs``, reflinks, the making of sockets. Of ``sendfile``,
``copy_file_range``, ``splice`` and ``pwritev`` no first part is taken.
"""

from __future__ import annotations

import errno
import os
import re
import select
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from crashlab import trace as t
from crashlab.record.strace.notices import CHANGING, NUMBERS, Notice, Notices

if TYPE_CHECKING:
    from collections.abc import Callable

    from crashlab.record.strace.decoder import Decoder
    from crashlab.record.strace.mirror import Node, Where
    from crashlab.record.strace.processes import Process
    from crashlab.record.watch import Striker

_AT_FDCWD = -100
_REMOVES_DIRECTORY = 0x200
_KNOWN_AFTER_S = 5.0
_MOST_VECTORS = 1024
_WRITES = {"write": 2, "pwrite64": 2, "sendfile": 3, "copy_file_range": 4, "splice": 4, "writev": 2, "pwritev": 2}
_TARGETS = {"copy_file_range": 2, "splice": 2}
_MADE = {"mkdir": "mkdir", "mkdirat": "mkdir", "mknod": "mknod", "mknodat": "mknod"}
_AT = {"mkdirat", "mknodat", "unlinkat", "fchmodat", "fchmodat2", "utimensat", "futimesat", "openat", "openat2"}
_CHANGES = {
    "truncate": "truncate",
    **dict.fromkeys(("chmod", "fchmodat", "fchmodat2"), "chmod"),
    **dict.fromkeys(("utimensat", "utimes", "futimesat"), "utime"),
    **dict.fromkeys(("setxattr", "lsetxattr"), "setxattr"),
    **dict.fromkeys(("removexattr", "lremovexattr"), "removexattr"),
}
_TAKES_PART = {"write", "pwrite64", "writev"}


@dataclass(frozen=True, slots=True)
class _Would:
    """What a call is about to do: ``call`` as the gate names it, on ``path``; ``node`` where it exists."""

    call: str
    path: str
    node: Node | None = None
    length: int = 0


def can_refuse(name: str) -> bool:
    """Whether a call of this name can be made to fail."""
    return name in NUMBERS


class Refusals:
    """Puts each notice to ``striker``, answers it, and tells what was refused."""

    def __init__(self, striker: Striker, decoder: Decoder) -> None:
        self._striker, self._decoder = striker, decoder
        self.notices = Notices()

    def register(self, poll: select.poll) -> None:
        """Have the notices polled too."""
        poll.register(self.notices.descriptor, select.POLLIN)

    def serve(self, poll: select.poll, ready: dict[int, int], read: Callable[[float], bool]) -> bool:
        """Answer one notice, if there is one. ``read(limit_s)`` decodes what strace has told by now."""
        before = self.notices.descriptor
        if before not in ready:
            return False
        if not ready[before] & select.POLLIN:
            poll.unregister(before)  # nobody is left whose calls could wait
            return True
        notice = self.notices.take()
        if self.notices.descriptor != before:
            poll.unregister(before)
            self.register(poll)
        elif not self.notices.listening:
            poll.unregister(before)  # the launcher has ended without handing anything over
        if notice is not None:
            while read(0.0):
                pass
            self._decide(notice, read)
        return True

    def _decide(self, notice: Notice, read: Callable[[float], bool]) -> None:
        try:
            process = self._process(notice, read)
            would = None if process is None else _would(self._decoder, process, notice)
        except OSError:
            would = None  # the process has ended, or its call fails by itself: it has no such memory
        if process is None or would is None or not self.notices.is_valid(notice):
            self.notices.answer(notice)
            return
        strike = self._striker.strike(self._decoder.count + 1, would.call, would.length)
        if strike is None:
            self.notices.answer(notice)
        elif strike.take is not None:
            self._refused(process, would, "short")
            self.notices.answer(notice, result=_taken(notice, strike.take))
        else:
            self._refused(process, would, strike.error)
            self.notices.answer(notice, error=int(getattr(errno, strike.error)))

    def _process(self, notice: Notice, read: Callable[[float], bool]) -> Process | None:
        """The process of a notice: a child may be heard of before its parent's call is told."""
        until = time.monotonic() + _KNOWN_AFTER_S
        while (process := self._decoder.process_of(notice.pid)) is None:
            if not read(max(0.0, until - time.monotonic())):
                self._decoder.note(f"{notice.name} of a process that strace did not show could not be refused")
                return None
        return process

    def _refused(self, process: Process, would: _Would, error: str) -> None:
        self._decoder.tell(process, t.Refused, call=would.call, error=error, path=would.path, time_ns=time.time_ns())
        if would.call in ("fsync", "fdatasync") and would.node is not None:
            would.node.stored.clear()
            fields = {"path": would.path, "inode": would.node.number, "data_only": would.call == "fdatasync"}
            self._decoder.tell(process, t.Fsync, **fields, failed=True, time_ns=time.time_ns())


def _taken(notice: Notice, size: int) -> int:
    """Make the first part of a write in the process's stead, through its own open file."""
    pieces = [(notice.args[1], notice.args[2])] if notice.name != "writev" else notice.vectors(1, notice.args[2])
    data = b""
    for address, length in pieces:
        data += notice.memory(address, min(length, size - len(data)))
    descriptor = notice.opened(0)
    try:
        if notice.name == "pwrite64":
            return os.pwrite(descriptor, data, notice.args[3])
        return os.write(descriptor, data)
    finally:
        os.close(descriptor)


# --- what a call would do --------------------------------------------------------------------------


def _would(decoder: Decoder, process: Process, notice: Notice) -> _Would | None:
    """What it would change below the root; None where that is nothing, or where it fails by itself."""
    name = notice.name
    if name in _WRITES or name in ("pwritev2", "fallocate"):
        return _would_write(process, notice)
    if name in ("fsync", "fdatasync", "ftruncate", "fchmod", "fsetxattr", "fremovexattr"):
        return _would_change(process, notice, name)
    if name in ("open", "openat", "openat2", "creat"):
        return _would_open(decoder, process, notice)
    if name.startswith(("rename", "link", "symlink")):
        return _would_name(decoder, process, notice)
    return _would_act(decoder, process, notice)


def _would_write(process: Process, notice: Notice) -> _Would | None:
    slot = process.table.get(notice.number(_TARGETS.get(notice.name, 0)))
    node = None if slot is None else slot.description.node
    if slot is None or node is None or node.kind != "file" or slot.description.flags.isdisjoint({"O_WRONLY", "O_RDWR"}):
        return None
    length = notice.args[_WRITES[notice.name]] if notice.name in _WRITES else 1
    if notice.name == "writev":
        length = sum(size for _, size in notice.vectors(1, min(length, _MOST_VECTORS)))
    if not length:
        return None
    call = {"fallocate": "posix_fallocate", "pwrite64": "pwrite"}.get(notice.name, notice.name)
    length = length if notice.name in _TAKES_PART else 0
    return _Would(call.replace("pwritev2", "pwritev"), slot.description.path, node, length)


def _would_change(process: Process, notice: Notice, name: str) -> _Would | None:
    slot = process.table.get(notice.number(0))
    if slot is None or slot.description.node is None:
        return None
    call = {"fsetxattr": "setxattr", "fremovexattr": "removexattr"}.get(name, name)
    return _Would(call, slot.description.path, slot.description.node)


def _where(decoder: Decoder, process: Process, notice: Notice, at: int | None, *, follow: bool) -> Where | None:
    """What the path behind the descriptor in argument ``at`` means; ``at`` None: the path is the first argument."""
    text = notice.text(0 if at is None else at + 1)
    start = process.surroundings.directory
    if at is not None and notice.number(at) != _AT_FDCWD:
        slot = process.table.get(notice.number(at))
        if slot is None:
            return None
        start = slot.description.node or slot.description.real
    if not text or re.match(r"/proc/|/dev/fd/", text):
        return None
    where = decoder.mirror.resolve(start, text, follow=follow)
    return None if where is None or where.path is None or where.parent is None else where


def _would_open(decoder: Decoder, process: Process, notice: Notice) -> _Would | None:
    if notice.name == "openat2":
        flags = int.from_bytes(notice.memory(notice.args[2], 8), "little")
    elif notice.name == "creat":
        flags = os.O_CREAT | os.O_WRONLY | os.O_TRUNC
    else:
        flags = notice.args[2 if notice.name == "openat" else 1]
    if not flags & CHANGING or flags & os.O_TMPFILE == os.O_TMPFILE:
        return None
    exclusive = bool(flags & os.O_CREAT and flags & os.O_EXCL)
    follow = not (exclusive or flags & os.O_NOFOLLOW)
    where = _where(decoder, process, notice, 0 if notice.name in _AT else None, follow=follow)
    if where is None or (where.node is None and not flags & os.O_CREAT) or (where.node is not None and exclusive):
        return None
    assert where.path is not None
    if where.node is None:
        return _Would("create", where.path)
    if where.node.kind != "file":
        return None
    truncates = flags & os.O_TRUNC and where.node.data.size
    return _Would("truncate" if truncates else "open", where.path, where.node)


def _would_name(decoder: Decoder, process: Process, notice: Notice) -> _Would | None:
    """Calls with two paths, of which the second is the new name; of a symbolic link the first is only a text."""
    at = "at" in notice.name
    second = _second(notice)
    target = _where(decoder, process, second, 0 if at else None, follow=False)
    if target is None:
        return None
    assert target.path is not None
    if not notice.name.startswith("rename"):
        return _Would(notice.name.removesuffix("at"), target.path) if target.node is None else None
    source = _where(decoder, process, notice, 0 if at else None, follow=False)
    if source is None or source.node is None or source.node is target.node:
        return None
    assert source.path is not None
    return _Would("rename", source.path, source.node)


def _second(notice: Notice) -> Notice:
    """The same call seen from its second path on."""
    skipped = {"symlinkat": 1, "renameat": 2, "renameat2": 2, "linkat": 2}.get(notice.name, 1)
    return Notice(notice.id, notice.pid, notice.name, notice.args[skipped:])


def _would_act(decoder: Decoder, process: Process, notice: Notice) -> _Would | None:
    """Calls with one path: what is made must be new, what is removed or changed must be there."""
    name = notice.name
    if name == "utimensat" and not notice.args[1]:
        return _would_change(process, notice, "utime")
    follow = name not in _MADE and not name.startswith(("unlink", "rmdir", "l"))
    where = _where(decoder, process, notice, 0 if name in _AT else None, follow=follow)
    if where is None:
        return None
    assert where.path is not None
    if name in _MADE:
        return _Would(_MADE[name], where.path) if where.node is None else None
    if where.node is None:
        return None
    if name in ("unlink", "unlinkat", "rmdir"):
        directory = name == "rmdir" or (name == "unlinkat" and bool(notice.args[2] & _REMOVES_DIRECTORY))
        fits = (where.node.kind == "directory") == directory and not where.node.entries
        return _Would("rmdir" if directory else "unlink", where.path, where.node) if fits else None
    return _Would(_CHANGES[name], where.path, where.node)
