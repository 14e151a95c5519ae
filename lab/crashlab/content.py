"""The bytes of one file, immutable, in 4 KiB blocks that versions of the file share.

A write builds a new :class:`Content` that shares every untouched block with the old one, and its
digest is a sum over blocks, so that a change costs the blocks that it touches. Holes are blocks of
zeros: sparse and written zeros are not told apart, as no read can tell them apart.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import lru_cache

from crashlab.errors import LabError

BLOCK_BYTES = 4096
SIZE_LIMIT_BYTES = 1 << 34  # a size beyond this is a mistake of the subject; block lists would eat all memory
_MODULUS = 1 << 128
_ZERO_BLOCK = bytes(BLOCK_BYTES)


@lru_cache(maxsize=65_536)
def block_digest(index: int, block: bytes) -> int:
    """The share of one whole block in :attr:`Content.block_sum`."""
    return int.from_bytes(hashlib.blake2b(block, digest_size=16, salt=index.to_bytes(8, "little")).digest(), "little")


@dataclass(frozen=True, slots=True)
class Content:
    r"""Immutable file contents.

    ``blocks`` are whole blocks of :data:`BLOCK_BYTES`, the last one padded with zeros; ``size`` is
    the length in bytes; ``block_sum`` is the sum of the block digests modulo 2**128.

    >>> Content.of(b"hello").write(5, b" world").read()
    b'hello world'
    >>> Content.of(b"hello").truncate(7).read()
    b'hello\x00\x00'
    """

    blocks: tuple[bytes, ...] = ()
    size: int = 0
    block_sum: int = 0

    @staticmethod
    def of(data: bytes) -> Content:
        """The contents ``data``."""
        return Content().write(0, data)

    def read(self) -> bytes:
        """All bytes."""
        return b"".join(self.blocks)[: self.size]

    def write(self, offset: int, data: bytes) -> Content:
        """These contents with ``data`` laid over them at ``offset``; a gap before it is zeros."""
        if not data:
            return self
        end = offset + len(data)
        grown = self._padded(max(self.size, end))
        first, last = offset // BLOCK_BYTES, (end - 1) // BLOCK_BYTES
        head = grown.blocks[first][: offset % BLOCK_BYTES]
        tail = grown.blocks[last][(end - 1) % BLOCK_BYTES + 1 :]
        return grown.replace_blocks(first, head + data + tail)

    def truncate(self, size: int) -> Content:
        """These contents cut or grown with zeros to ``size`` bytes."""
        if size >= self.size:
            return self._padded(size)
        kept = -(-size // BLOCK_BYTES)
        gone = sum(block_digest(kept + i, block) for i, block in enumerate(self.blocks[kept:]))
        cut = Content(self.blocks[:kept], size, (self.block_sum - gone) % _MODULUS)
        inside = size % BLOCK_BYTES
        if not inside:
            return cut
        last = cut.blocks[-1][:inside] + _ZERO_BLOCK[inside:]
        return cut.replace_blocks(kept - 1, last)

    @property
    def digest(self) -> str:
        """Hash of bytes and size, as 32 hexadecimal digits."""
        return hashlib.blake2b(f"{self.size}:{self.block_sum}".encode(), digest_size=16).hexdigest()

    def _padded(self, size: int) -> Content:
        """The same bytes, with zero blocks up to ``size``."""
        if size <= self.size:
            return self
        if size > SIZE_LIMIT_BYTES:
            text = f"a file of {size} bytes is larger than the lab models (limit {SIZE_LIMIT_BYTES} bytes)"
            raise LabError(text)
        have, need = len(self.blocks), -(-size // BLOCK_BYTES)
        added = sum(block_digest(index, _ZERO_BLOCK) for index in range(have, need))
        blocks = self.blocks + (_ZERO_BLOCK,) * (need - have)
        return Content(blocks, size, (self.block_sum + added) % _MODULUS)

    def replace_blocks(self, first: int, data: bytes) -> Content:
        """Whole blocks from ``first`` on replaced by ``data``, whose length is a multiple of a block."""
        new = tuple(data[at : at + BLOCK_BYTES] for at in range(0, len(data), BLOCK_BYTES))
        total = self.block_sum
        for index, (old_block, new_block) in enumerate(
            zip(self.blocks[first : first + len(new)], new, strict=True), first
        ):
            if old_block != new_block:
                total += block_digest(index, new_block) - block_digest(index, old_block)
        return Content(self.blocks[:first] + new + self.blocks[first + len(new) :], self.size, total % _MODULUS)


EMPTY = Content()
