"""What the disk saw: writes, flushes and marks in the order of their arrival, and the images of a crash.

A write counts as *completed* when the disk has answered it. A flush promises the writes that were
completed before it, and none that was still on its way. So an image at a moment holds every write
completed before the last flush, and any subset of those that were issued later or were still open.

Not modelled: a write torn inside of one request (``torn`` splits requests at 4 KiB), drives that lie
about a flush.
"""

from __future__ import annotations

import random
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

from crashlab.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

BLOCK_BYTES = 4096
NEVER = 1 << 62
_ENTRY = struct.Struct("<BqqI")
_WRITE, _FLUSH, _MARK = 0, 1, 2


@dataclass(frozen=True, slots=True)
class Write:
    """``data`` for ``offset``; ``completed_at`` is the length of the log when the disk had answered it."""

    offset: int
    data: bytes
    completed_at: int = NEVER
    failed: bool = False


@dataclass(frozen=True, slots=True)
class Flush:
    """What was completed before this is durable."""


@dataclass(frozen=True, slots=True)
class Mark:
    """The controlling process says where it is."""

    name: int


Entry = Write | Flush | Mark


@dataclass(frozen=True, slots=True)
class Image:
    """One disk after a crash: the floor at ``floor`` and the later writes at ``positions``.

    ``pieces`` are the same writes as ``(position, first byte, end byte)`` where a write is torn.
    """

    run: int
    floor: int
    pieces: tuple[tuple[int, int, int], ...]

    @property
    def positions(self) -> tuple[int, ...]:
        """The writes that reached the disk beyond the floor."""
        return tuple(dict.fromkeys(position for position, _, _ in self.pieces))


@dataclass(frozen=True)
class DiskLog:
    """The entries of one run, frozen."""

    run: int
    entries: tuple[Entry, ...]

    def position(self, mark: int) -> int:
        """Where mark ``mark`` was set, the last time. Raises UsageError where it never was."""
        for position in range(len(self.entries) - 1, -1, -1):
            if self.entries[position] == Mark(mark):
                return position
        text = f"mark {mark} is not in this log of {len(self.entries)} entries"
        raise UsageError(text)

    def floor(self, position: int) -> int:
        """Position of the last flush before ``position``; -1 where none was: then only the base is sure."""
        return next((at for at in range(position - 1, -1, -1) if isinstance(self.entries[at], Flush)), -1)

    def pending(self, position: int) -> list[int]:
        """Writes issued before ``position`` that the last flush does not promise. Failed ones never count."""
        floor = self.floor(position)
        return [
            at
            for at in range(position)
            if isinstance(entry := self.entries[at], Write) and not entry.failed and entry.completed_at > floor
        ]


def images(log: DiskLog, position: int, *, seed: int, count: int, torn: bool = False) -> Iterator[Image]:
    """At most ``count`` images at ``position``, all where there are few, distinct by what they write."""
    floor = log.floor(position)
    units = [unit for at in log.pending(position) for unit in _units(log, at, torn=torn)]
    seen: set[int] = set()
    for chosen in _subsets(len(units), random.Random(f"{seed} {position}"), count):  # noqa: S311 - a seeded choice, no secret
        pieces = tuple(units[index] for index in range(len(units)) if chosen >> index & 1)
        content = _content(log, pieces)
        if content in seen:
            continue
        seen.add(content)
        yield Image(log.run, floor, pieces)
        if len(seen) >= count:
            return


def _units(log: DiskLog, at: int, *, torn: bool) -> list[tuple[int, int, int]]:
    entry = log.entries[at]
    assert isinstance(entry, Write)
    size = len(entry.data)
    step = BLOCK_BYTES if torn else max(size, 1)
    return [(at, start, min(start + step, size)) for start in range(0, size, step)]


def _content(log: DiskLog, pieces: tuple[tuple[int, int, int], ...]) -> int:
    sectors: dict[int, bytes] = {}
    for at, start, end in pieces:
        entry = log.entries[at]
        assert isinstance(entry, Write)
        for inside in range(start, end, BLOCK_BYTES):
            sectors[entry.offset + inside] = entry.data[inside : min(inside + BLOCK_BYTES, end)]
    return hash(frozenset(sectors.items()))


_FEW = 12


def _subsets(size: int, chooser: random.Random, count: int) -> Iterator[int]:
    """Subsets as bit sets: all where few, else none, all, prefixes, one alone missing or present, then seeded."""
    everything = (1 << size) - 1
    if size <= _FEW and everything < count:
        yield from range(everything + 1)
        return
    core = [0, everything]
    for index in range(size):
        core += [(1 << index) - 1, everything ^ (1 << index), 1 << index]
    if len(core) > count:  # a seeded part of the core, so that no end of the log is favoured
        core = [*core[:2], *chooser.sample(core[2:], len(core) - 2)]
    yield from core
    for _ in range(4 * count):
        yield chooser.getrandbits(size) if size else 0


# --- on the wire --------------------------------------------------------------------------------


def pack(entries: list[Entry]) -> bytes:
    """The entries as bytes, for the way from the disk's process to ours."""
    parts = []
    for entry in entries:
        if isinstance(entry, Write):
            completed = -entry.completed_at if entry.failed else entry.completed_at
            parts += [_ENTRY.pack(_WRITE, entry.offset, completed, len(entry.data)), entry.data]
        elif isinstance(entry, Mark):
            parts.append(_ENTRY.pack(_MARK, entry.name, 0, 0))
        else:
            parts.append(_ENTRY.pack(_FLUSH, 0, 0, 0))
    return b"".join(parts)


def unpack(data: bytes) -> tuple[Entry, ...]:
    """What :func:`pack` packed.

    >>> unpack(pack([Mark(3), Write(512, b"ab", 2), Flush()]))
    (Mark(name=3), Write(offset=512, data=b'ab', completed_at=2, failed=False), Flush())
    """
    entries: list[Entry] = []
    at = 0
    while at < len(data):
        kind, first, second, length = _ENTRY.unpack_from(data, at)
        at += _ENTRY.size
        if kind == _WRITE:
            entries.append(Write(first, data[at : at + length], abs(second), failed=second < 0))
            at += length
        else:
            entries.append(Mark(first) if kind == _MARK else Flush())
    return tuple(entries)
