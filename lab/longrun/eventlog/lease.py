"""One writer per session: a lock for as long as it lives, and a fence, a number that only rises.

The lock is ``flock`` on ``lease``; the kernel frees it when its process dies. It is a comfort: it may be on a file that
somebody removed, or on a network file system that forgot it. The proof is the fence. Each opening takes a higher one,
each record bears its writer's, and a writer looks before each write whether a higher one stands in ``lease``, and
whether the segment has grown without it. What slips between that look and the write is found by any reader, since
two lines with one number, or with a fence that falls, are no torn tail.

Beside its fence a writer notes what was promised when it came. So a log that was put back to an earlier moment, with
its mark, is known by the lease that was not: unless all that is missing was promised to the last writer itself.

The file has two halves of 64 bytes, written in turn: a slot with the fence, a slot with the promise. One of 64 bytes
in all, two fences, is of a program that noted nothing; its fences count.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from longrun.eventlog.barriers import sync_data
from longrun.eventlog.errors import LogBusy, LogFenced
from longrun.eventlog.segments import LEASE_NAME
from longrun.eventlog.slots import NOTED, NOTHING, SLOT_BYTES, SLOTS, Slots, read_slots

if TYPE_CHECKING:
    from pathlib import Path

STRIDE = 2 * SLOT_BYTES
"""A fence, and what was promised when it was taken."""


def promised_before(directory: Path) -> int:
    """What the last writers found promised; :data:`NOTHING` where the lease cannot tell."""
    path = directory / LEASE_NAME
    return max(read_slots(path.read_bytes(), STRIDE, NOTED), default=NOTHING) if path.exists() else NOTHING


class Owner(Protocol):
    """What a log asks of its lease."""

    @property
    def stored(self) -> int:
        """The highest fence that the file knew when the lease was taken; -1 for none."""

    def claim(self, fence: int, promised: int) -> None:
        """Write our own fence, above all before it, and beside it what is promised by now."""

    def require(self, fence: int, descriptor: int, size: int) -> None:
        """Raise LogFenced unless the session is still ours, and the segment as we left it."""

    def close(self) -> None:
        """Let the next one in."""


@dataclass(eq=False)
class Lease:
    """The held lock of one session."""

    directory: Path
    _slots: Slots

    @staticmethod
    def take(directory: Path) -> Lease:
        """The lease of ``directory``. Raises LogBusy at once, without waiting."""
        descriptor = os.open(directory / LEASE_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return Lease(directory, Slots.of(descriptor, STRIDE))
        except BlockingIOError as error:
            os.close(descriptor)
            text = f"{directory}: another process has this session open. Wait until it has ended, or inspect it."
            raise LogBusy(text) from error
        except OSError:
            os.close(descriptor)
            raise

    @property
    def stored(self) -> int:
        """The highest fence that the file knew when the lease was taken; -1 for none."""
        return self._slots.number

    def claim(self, fence: int, promised: int) -> None:
        """Write our own fence and what is promised, in one write, durably."""
        self._slots.raise_to(fence, sync_data, noted=promised)

    def require(self, fence: int, descriptor: int, size: int) -> None:
        """Raise LogFenced where a higher fence than ours is stored, or the segment has not the ``size`` we left."""
        found = max(read_slots(os.pread(self._slots.descriptor, STRIDE * SLOTS, 0), STRIDE), default=NOTHING)
        if found > fence:
            text = f"{self.directory}: writer {found} has taken over from writer {fence}. Nothing more was written."
            raise LogFenced(text)
        if not self._is_ours():
            text = f"{self.directory}: {LEASE_NAME} was removed or replaced. Nothing more was written."
            raise LogFenced(text)
        grown = os.fstat(descriptor).st_size
        if grown != size:
            text = f"{self.directory}: the segment has {grown} bytes, this writer left {size}; it wrote nothing more."
            raise LogFenced(text)

    def _is_ours(self) -> bool:
        with contextlib.suppress(FileNotFoundError):
            return os.path.samestat(os.fstat(self._slots.descriptor), os.stat(self.directory / LEASE_NAME))
        return False

    def close(self) -> None:
        """Free the lock. The file stays: removing it would let two processes lock two files of one name."""
        os.close(self._slots.descriptor)
