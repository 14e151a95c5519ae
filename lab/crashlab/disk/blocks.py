"""The two disks in memory: the live one with its log, and the one that shows an image.

A disk is a table from block number to 4 KiB of bytes; what is not in it reads as zeros. An image is
the floor of a log plus chosen writes, in a table of its own: whatever mounting it writes goes there,
and goes with it.
"""

from __future__ import annotations

import errno
import os
import time
from typing import TYPE_CHECKING

from crashlab.disk.log import BLOCK_BYTES, NEVER, Entry, Flush, Mark, Write

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

Blocks = dict[int, bytes]
_ZEROS = bytes(BLOCK_BYTES)


def read(blocks: Blocks, offset: int, size: int) -> bytes:
    """``size`` bytes at ``offset``."""
    first, inside = divmod(offset, BLOCK_BYTES)
    if inside == 0 and size == BLOCK_BYTES:
        return blocks.get(first, _ZEROS)
    last = (offset + size - 1) // BLOCK_BYTES
    whole = b"".join([blocks.get(number, _ZEROS) for number in range(first, last + 1)])
    return whole[inside : inside + size]


def write(blocks: Blocks, offset: int, data: bytes) -> None:
    """Lay ``data`` over the blocks at ``offset``."""
    number, inside = divmod(offset, BLOCK_BYTES)
    if inside == 0 and len(data) == BLOCK_BYTES:
        blocks[number] = data
        return
    at = 0
    while at < len(data):
        piece = data[at : at + BLOCK_BYTES - inside]
        if len(piece) == BLOCK_BYTES:
            blocks[number] = piece
        else:
            old = blocks.get(number, _ZEROS)
            blocks[number] = old[:inside] + piece + old[inside + len(piece) :]
        at += len(piece)
        number, inside = number + 1, 0


def load(path: str) -> Blocks:
    """The blocks of a sparse file that are not all zeros."""
    blocks: Blocks = {}
    with open(path, "rb", buffering=0) as file:
        end, at = os.fstat(file.fileno()).st_size, 0
        while at < end:
            try:
                at = os.lseek(file.fileno(), at, os.SEEK_DATA) // BLOCK_BYTES * BLOCK_BYTES
            except OSError as error:
                if error.errno == errno.ENXIO:  # only a hole is left
                    break
                raise
            hole = os.lseek(file.fileno(), at, os.SEEK_HOLE)
            os.lseek(file.fileno(), at, os.SEEK_SET)
            while at < hole and (block := file.read(BLOCK_BYTES)):
                if block != _ZEROS:
                    blocks[at // BLOCK_BYTES] = block.ljust(BLOCK_BYTES, b"\0")
                at += BLOCK_BYTES
    return blocks


class Live:
    """The live disk: every write and flush is logged; data writes may be held back, or fail.

    A write *carries data* when one of its 4 KiB blocks equals a block that :attr:`known` has: a page
    of a file that the workload is known to hold at some time. Journal and metadata never equal one,
    with two exceptions, both wanted: ``data=journal`` writes pages into the journal, and a block of
    zeros is never known. btrfs keeps short files inside its metadata, where they are not seen.
    """

    def __init__(self, answer: Callable[[int, int, int], None]) -> None:
        self._answer = answer
        self.blocks: Blocks = {}
        self.base: Blocks = {}
        self.entries: list[Entry] = []
        self.run = 0
        self.known: frozenset[bytes] = frozenset()
        self.held_for_s = 0.0
        self.failing = False
        self._held: list[tuple[float, int, int]] = []

    def begin(self) -> None:
        """A new run: what is on the disk now is its base, and the log is empty."""
        self.release()
        self.base, self.entries = dict(self.blocks), []
        self.run += 1

    def restore(self, blocks: Blocks) -> None:
        """Another disk altogether; only while nothing is mounted."""
        self.blocks = dict(blocks)
        self.begin()

    def carries_data(self, data: bytes) -> bool:
        """Whether a write has a page that belongs to a file of the workload."""
        known = self.known
        return any(data[at : at + BLOCK_BYTES] in known for at in range(0, len(data), BLOCK_BYTES))

    def write(self, unique: int, offset: int, data: bytes) -> None:
        """Log a write; do it and answer it now, later, or never well."""
        position = len(self.entries)
        special = (self.failing or self.held_for_s) and self.carries_data(data)
        if special and self.failing:
            self.entries.append(Write(offset, data, position + 1, failed=True))
            self._answer(unique, 0, errno.EIO)
        elif special:
            self.entries.append(Write(offset, data, NEVER))
            self._held.append((time.monotonic() + self.held_for_s, unique, position))
        else:
            self.entries.append(Write(offset, data, position + 1))
            write(self.blocks, offset, data)
            self._answer(unique, len(data), 0)

    def flush(self) -> None:
        """What was completed is durable."""
        self.entries.append(Flush())

    def mark(self, name: int) -> None:
        """Everything that arrives from here on is later than mark ``name``."""
        self.entries.append(Mark(name))

    def release(self, until: float = float("inf")) -> float | None:
        """Complete the held writes whose time has come by ``until``; when the next one is due."""
        while self._held and self._held[0][0] <= until:
            _, unique, position = self._held.pop(0)
            entry = self.entries[position]
            assert isinstance(entry, Write)
            write(self.blocks, entry.offset, entry.data)
            self.entries[position] = Write(entry.offset, entry.data, len(self.entries))
            self._answer(unique, len(entry.data), 0)
        return self._held[0][0] if self._held else None


class Shown:
    """The disk that shows one image of a run of the live disk."""

    def __init__(self) -> None:
        self.blocks: Blocks = {}
        self._floors: dict[tuple[int, int], Blocks] = {}

    def show(self, live: Live, floor: int, pieces: Iterable[tuple[int, int, int]]) -> None:
        """The floor of the live disk's log at ``floor``, and these pieces of later writes over it."""
        blocks = dict(self._floor(live, floor))
        entries = live.entries
        for position, start, end in pieces:
            entry = entries[position]
            assert isinstance(entry, Write)
            write(blocks, entry.offset + start, entry.data[start:end])
        self.blocks = blocks

    def _floor(self, live: Live, floor: int) -> Blocks:
        key = live.run, floor
        if key not in self._floors:
            blocks = dict(live.base)
            done = [each for each in live.entries[: max(floor, 0)] if isinstance(each, Write) and not each.failed]
            for entry in sorted(done, key=lambda each: each.completed_at):
                if entry.completed_at <= floor:
                    write(blocks, entry.offset, entry.data)
            self._floors = {key: blocks}  # one at a time: images come moment by moment
        return self._floors[key]
