"""A recorded run on a real file system: each op is marked in the log of the disk below it.

Before each op and after it the disk is told, so that every block write belongs to a crash moment.
Between ops the kernel is nudged, by a seed, to write what it might write at any time: a stranger's
fsync, a range of some open file, everything. Nothing of that changes a byte or a name.

The calls go through ctypes: the recorder watches the ones that Python has, and must not see these.
"""

from __future__ import annotations

import ctypes
import os
import random
import struct
from typing import TYPE_CHECKING, NoReturn

from crashlab.disk.wire import Control

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from crashlab import trace as t

BYSTANDER = ".bystander"
"""A stranger's file, in the traced root beside the places; the subject never meets it."""

ACTIONS = ("nothing", "nothing", "stranger", "range", "all")
_PAGE_BYTES = 4096
_BLOCKS_AT_MOST = 16


class DiskGate:
    """Asked by the recorder before each op, and told of each; ``mark`` is the control socket of the disk."""

    def __init__(self, mark: str, seed: int, root: str, emit: Callable[[t.Op], None]) -> None:
        self._control = Control.to(mark)
        self._emit = emit
        self._library = ctypes.CDLL(None, use_errno=True)
        self._root = os.fsencode(root)
        self._chooser = random.Random(f"on disk {seed}")  # noqa: S311 - a seeded choice, no secret
        self._own = set(os.listdir("/proc/self/fd"))

    def before(self, n: int) -> None:
        """Op ``n`` is about to start."""
        self._mark(2 * n - 1)

    def cut_bytes(self, _n: int, _length: int) -> int | None:
        """No write is cut."""
        return None

    def die(self) -> NoReturn:
        """Never called: nothing is cut."""
        raise AssertionError

    def end(self) -> None:
        """The run is over."""
        self._control.close()

    def told(self, op: t.Op) -> None:
        """Op ``op`` is done: pass it on, mark it, and nudge the kernel."""
        self._emit(op)
        self._mark(2 * op.n)
        self._nudge(self._chooser.choice(ACTIONS))

    def _mark(self, name: int) -> None:
        self._control.ask("mark", struct.pack("<q", name))

    def _nudge(self, action: str) -> None:
        if action == "stranger":
            self._with(os.path.join(self._root, BYSTANDER.encode()), self._touch)
        elif action == "all":
            self._with(self._root, self._library.syncfs)
        elif action == "range":
            self._range()

    def _with(self, path: bytes, act: Callable[[int], object]) -> None:
        descriptor = self._library.open(path, os.O_RDONLY | os.O_CLOEXEC)
        if descriptor >= 0:
            act(descriptor)
            self._library.close(descriptor)

    def _touch(self, descriptor: int) -> None:
        """A new time makes the inode dirty, so that its fsync has something to commit."""
        seconds = ctypes.c_int64 * 4
        times = seconds(0, 0, self._chooser.randrange(1 << 30), 0)
        self._library.futimens(descriptor, times)
        self._library.fsync(descriptor)

    def _range(self) -> None:
        """Start and await the write of a random range of some file that the subject has open."""
        open_now: Sequence[int] = sorted(int(entry) for entry in set(os.listdir("/proc/self/fd")) - self._own)
        if open_now:
            first, length = self._chooser.randrange(_BLOCKS_AT_MOST), self._chooser.randint(1, _BLOCKS_AT_MOST)
            bounds = ctypes.c_int64(first * _PAGE_BYTES), ctypes.c_int64(length * _PAGE_BYTES)
            self._library.sync_file_range(self._chooser.choice(open_now), *bounds, ctypes.c_uint(1 | 2 | 4))
