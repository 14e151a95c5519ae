"""Reads that fail for real: from a chosen read of the recovery on, the subject meets EIO.

A read is an opening for reading, a read of an open file, or a listing, of what lies below the root; they
are numbered from 1 in the order in which they happen. The patches go into the one process whose reads are
to fail. Not reached: ``stat``, reads through ``mmap``, and what C libraries read by themselves.
"""

from __future__ import annotations

import builtins
import errno
import inspect
import io
import os
import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from crashlab.record.patch import replace_everywhere
from crashlab.subject import Subject

if TYPE_CHECKING:
    from collections.abc import Callable

    from crashlab.subject import AnySubject

NEVER = 0
_READ_MODES = frozenset({"r", "rb", "rt"})
_TEXT = ("encoding", "errors", "newline")
_CHANGES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC


class Reads:
    """Counts the reads below ``root``; read ``at`` and all later ones fail. :data:`NEVER` fails none."""

    def __init__(self, root: str, at: int) -> None:
        self.count = 0
        self.failed = 0
        self.active = True
        self._root = os.path.realpath(root) + os.sep
        self._at = at
        self._lock = threading.Lock()

    def met(self, place: Any) -> None:
        """A read of ``place``, a path or a descriptor, is about to happen. Raises OSError where it fails."""
        if not self.active or not self._is_below(place):
            return
        with self._lock:
            self.count += 1
            fails = self._at != NEVER and self.count >= self._at
            self.failed += fails
        if fails:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    def during(self, subject: AnySubject) -> AnySubject:
        """The subject, whose reads fail only until it has resumed: what the lab and ``check`` read then is whole."""
        if not isinstance(subject, Subject):
            return subject
        resume = subject.resume or subject.run

        async def awaited(result: Any) -> Any:
            end = await result
            self.active = False
            return end

        def resumed(lab: Any) -> Any:
            result = resume(lab)
            if inspect.isawaitable(result):
                return awaited(result)
            self.active = False
            return result

        return replace(subject, resume=resumed)

    def _is_below(self, place: Any) -> bool:
        try:
            path = os.readlink(f"/proc/self/fd/{place}") if isinstance(place, int) else os.path.realpath(place)
        except (OSError, TypeError, ValueError):
            return False  # closed, or no path at all: the real call says what is wrong
        return (os.fsdecode(path) + os.sep).startswith(self._root)


class _Reader(io.FileIO):
    """A file opened for reading, each of whose reads is met first."""

    reads: Reads

    def readinto(self, *args: Any) -> Any:
        """Read, unless it fails."""
        self.reads.met(self.fileno())
        return super().readinto(*args)

    def readall(self) -> bytes:
        """Read all, unless it fails."""
        self.reads.met(self.fileno())
        return super().readall()

    def read(self, *args: Any) -> Any:
        """Read, unless it fails."""
        self.reads.met(self.fileno())
        return super().read(*args)


def install(root: str, at: int) -> Reads:
    """Let read ``at`` of this process, and every later one, fail. Returns what counts them."""
    reads = Reads(root, at)
    _Reader.reads = reads
    real_open, real_os_open = builtins.open, os.open

    def opened(file: Any, mode: str = "r", buffering: int = -1, *args: Any, **kwargs: Any) -> Any:
        text = dict(zip(_TEXT, args, strict=False)) | kwargs
        if mode not in _READ_MODES or len(args) > len(_TEXT) or text.keys() - set(_TEXT):
            return real_open(file, mode, buffering, *args, **kwargs)
        if not isinstance(file, int):
            reads.met(file)
        raw = _Reader(file, "rb")
        if buffering == 0:
            return raw
        buffered = io.BufferedReader(raw)
        return buffered if "b" in mode else io.TextIOWrapper(buffered, **text)

    def os_opened(path: Any, flags: int, *args: Any, **kwargs: Any) -> int:
        if not flags & _CHANGES:
            reads.met(path)
        return real_os_open(path, flags, *args, **kwargs)

    def first(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(place: Any = ".", *args: Any, **kwargs: Any) -> Any:
            reads.met(place)
            return real(place, *args, **kwargs)

        return call

    names = [name for name in ("read", "pread", "readv", "preadv", "listdir", "scandir") if hasattr(os, name)]
    pairs = [(getattr(os, name), first(getattr(os, name))) for name in names]
    replace_everywhere([(real_open, opened), (real_os_open, os_opened), (io.FileIO, _Reader), *pairs])
    return reads
