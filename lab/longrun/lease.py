"""One writer per directory: a lock for as long as it lives, and a number that fences off a late one.

The lock is the operating system's, on ``lease.lock``; the kernel frees it when its process dies, so a
kill leaves nothing to clear away. The number is ``writer_epoch`` in the checkpoint: raised by everyone
who opens the directory, read again before each save and each act. Who finds a higher one has lost the lease, although
nobody told it: its lock was on a file that somebody removed, or on a network file system that forgot it.

The limit: nothing protects a writer that is paused between that look and the rename, or the act, behind it.
Only a store, or a world, that compares the number itself could. Nor does the lock keep a child apart that
was forked while it was held.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, Self

from longrun.errors import LeaseHeld, LostLease
from longrun.protocol import CHECKPOINT_NAME

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

LOCK_NAME = "lease.lock"
_TAIL_BYTES = 64
_EPOCH = re.compile(rb'"writer_epoch":(\d+)\}$')


class Owner(Protocol):
    """What the loop asks of a lease: held inside a ``with`` block, looked after before each save and each act."""

    def __enter__(self) -> Self:
        """The directory is ours."""

    def __exit__(self, *_: object) -> None:
        """And now it is anybody's."""

    def require(self, epoch: int) -> None:
        """Raise LostLease unless the directory is still ours, with nothing above ``epoch`` in it."""


def stored_epoch(directory: Path) -> int | None:
    """The ``writer_epoch`` of the stored checkpoint, None where none is."""
    return epoch_at(directory / CHECKPOINT_NAME)


def epoch_at(path: Path) -> int | None:
    """The ``writer_epoch`` of the checkpoint in a file: its last member, since they are sorted. None where none is."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        size = os.fstat(descriptor).st_size
        found = _EPOCH.search(os.pread(descriptor, _TAIL_BYTES, max(0, size - _TAIL_BYTES)))
    finally:
        os.close(descriptor)
    return int(found[1]) if found else None


@dataclass(eq=False)
class Lease:
    """The lock on one directory, to be used as a context manager. ``epoch_of`` reads the number that stands there."""

    directory: Path
    _descriptor: int
    epoch_of: Callable[[Path], int | None] = stored_epoch

    @staticmethod
    def take(directory: Path, *, epoch_of: Callable[[Path], int | None] = stored_epoch) -> Lease:
        """The lease of ``directory``, its lock file there or not. Raises LeaseHeld at once, without waiting."""
        path = directory / LOCK_NAME
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(descriptor)
            text = f"{directory}: another process works here. Wait until it has ended, or take another directory."
            raise LeaseHeld(text) from error
        except OSError:
            os.close(descriptor)
            raise
        return Lease(directory, descriptor, epoch_of)

    def __enter__(self) -> Self:
        """The lease itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Free the lock. The file stays: removing it would let two processes lock two files of one name."""
        os.close(self._descriptor)

    def require(self, epoch: int) -> None:
        """Raise LostLease where the lock file is another one by now, or a higher number than ``epoch`` is stored."""
        found = self.epoch_of(self.directory)
        if found is not None and found > epoch:
            text = f"{self.directory}: writer {found} has taken over from writer {epoch}. Nothing more was written."
            raise LostLease(text)
        if not self._is_ours():
            text = f"{self.directory}: {LOCK_NAME} was removed or replaced. Nothing more was written."
            raise LostLease(text)

    def _is_ours(self) -> bool:
        with contextlib.suppress(FileNotFoundError):
            return os.path.samestat(os.fstat(self._descriptor), os.stat(self.directory / LOCK_NAME))
        return False
