"""What one file may hold after a power loss: its sizes, and for each block the versions of it.

A :class:`Variants` counts and numbers every combination without building bytes: number 0 is the
newest size with the newest blocks, the last one the oldest with the oldest. A combination's digest
is the sum of its blocks' digests, which is what :class:`crashlab.content.Content` sums.

Not modelled: damage of bytes that were durable; that is another fault.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from crashlab.content import BLOCK_BYTES, Content, block_digest
from crashlab.crash.rules import BlockVersion, torn

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from crashlab.crash.micro import Event
    from crashlab.crash.profiles import Profile

_ZEROS = bytes(BLOCK_BYTES)
MASK = (1 << 128) - 1

_Sizes = dict[int, tuple[int | None, int]]
"""Each size with the position of the growing write that made it, or None, and the op."""


@dataclass(frozen=True, slots=True)
class Sized:
    """One size, and for each of its blocks the versions, newest first, cut to the size.

    ``maker`` is the position of the growing write that made it, None for the durable size or one
    that was set; ``op`` is the op of either, 0 for the durable size. ``count`` combinations of blocks there are.
    """

    size: int
    maker: int | None
    op: int
    blocks: tuple[tuple[BlockVersion, ...], ...]
    count: int

    def sums(self) -> list[int]:
        """The block sum of every combination, in order of their numbers."""
        sums = [0]
        for index, versions in enumerate(self.blocks):
            digests = [block_digest(index, version.data) for version in versions]
            if len(digests) == 1:
                sums = [total + digests[0] for total in sums]
            else:
                sums = [total + digest for total in sums for digest in digests]
        return sums

    def choice(self, number: int) -> tuple[BlockVersion, ...]:
        """The versions of combination ``number``."""
        chosen = []
        for versions in reversed(self.blocks):
            number, index = divmod(number, len(versions))
            chosen.append(versions[index])
        return tuple(reversed(chosen))

    def number(self, indices: Sequence[int]) -> int:
        """The number of the combination with these versions."""
        number = 0
        for versions, index in zip(self.blocks, indices, strict=True):
            number = number * len(versions) + index
        return number

    def core(self, *, edges: bool) -> Iterator[int]:
        """All newest, all oldest; of each block that may vary that it alone is missing, or alone there, or a prefix."""
        newest, oldest = [0] * len(self.blocks), [len(versions) - 1 for versions in self.blocks]
        yield from (0, self.count - 1)
        varied = [index for index, last in enumerate(oldest) if last]
        for index in _edges(varied) if edges else varied:
            yield self.number([*newest[:index], oldest[index], *newest[index + 1 :]])
            yield self.number([*oldest[:index], 0, *oldest[index + 1 :]])
            yield self.number([*newest[:index], *oldest[index:]])


@dataclass(frozen=True, eq=False)
class Variants:
    """All contents that one file may have, in one situation. Equal to itself only: it is a key of caches."""

    made: tuple[Sized, ...]
    count: int
    only: Content | None = None
    """The content, where nothing may differ; then ``made`` is empty, as most files of a cut are like that."""

    @cached_property
    def sizes(self) -> tuple[Sized, ...]:
        """Every size, newest first, with the versions of its blocks."""
        if self.only is None:
            return self.made
        blocks = tuple([(BlockVersion(-1, 0, block),) for block in self.only.blocks])
        return (Sized(self.only.size, None, 0, blocks, 1),)

    def at(self, number: int) -> tuple[Sized, int]:
        """The size of variant ``number``, and the number of its combination of blocks."""
        for sized in self.sizes:
            if number < sized.count:
                return sized, number
            number -= sized.count
        raise IndexError(number)

    def part(self, number: int) -> tuple[int, int]:
        """``(size, block sum)`` of one variant."""
        if self.only is not None:
            return self.only.size, self.only.block_sum
        sized, inside = self.at(number)
        return sized.size, sum(block_digest(i, version.data) for i, version in enumerate(sized.choice(inside)))

    def content(self, number: int) -> Content:
        """The bytes of one variant."""
        if self.only is not None:
            return self.only
        sized, inside = self.at(number)
        blocks = tuple(version.data for version in sized.choice(inside))
        return Content(blocks, sized.size, sum(itertools.starmap(block_digest, enumerate(blocks))) & MASK)

    def core(self, *, edges: bool = False) -> list[int]:
        """The numbers to try first where not all can be: sizes whole and empty, blocks alone and missing.

        With ``edges`` only the first, the middle and the last of many blocks and of many sizes are taken.
        """
        taken = _edge_sizes(self.sizes) if edges else None
        numbers, start = [0, self.count - 1], 0
        for sized in self.sizes:
            if taken is None or sized.size in taken:
                numbers += [start + number for number in sized.core(edges=edges)]
            start += sized.count
        return list(dict.fromkeys(numbers))

    def holds(self, content: Content) -> bool:
        """Whether a file may have exactly this content, without going through the variants."""
        if self.only is not None:
            return (self.only.size, self.only.blocks) == (content.size, content.blocks)
        return any(
            sized.size == content.size
            and all(
                any(version.data == block for version in versions)
                for versions, block in zip(sized.blocks, content.blocks, strict=True)
            )
            for sized in self.sizes
        )


def _edges(found: Sequence[int]) -> tuple[int, ...]:
    """The first, the middle and the last."""
    return (found[0], found[(len(found) - 1) // 2], found[-1]) if len(found) > 3 else tuple(found)  # noqa: PLR2004 - all of three


def _edge_sizes(sizes: Sequence[Sized]) -> set[int]:
    """The newest size, the oldest, 0, and the newest that ends in the first, the middle and the last block."""
    in_block: dict[int, int] = {}
    for sized in sizes:
        in_block.setdefault(-(-sized.size // BLOCK_BYTES), sized.size)
    ends = _edges(sorted(in_block.keys() - {0}))
    return {0, sizes[0].size, sizes[-1].size, *(in_block[block] for block in ends)}


class Passed(NamedTuple):
    """How many of the events lie before a completed barrier that forced them in part.

    Of the first ``synced`` the synchronous writes have completed: what they wrote is there, and so are the
    sizes that were set before. The first ``swept`` were written out by a sync, as far as that forces.
    """

    synced: int = 0
    swept: int = 0


NOTHING_PASSED = Passed()


def variants_of(
    profile: Profile, durable: Content, events: Sequence[Event], cut: int | None, passed: Passed = NOTHING_PASSED
) -> Variants:
    """What a file may hold that durably held ``durable`` before ``events``.

    ``cut`` metadata changes show; None where a profile knows no such order.
    """
    if all(event.kind == "over" for event in events):  # these say only what sizes are left, and there is one
        return Variants((), 1, durable)
    sizes = _sizes(profile, durable.size, events, cut, passed)
    top = -(-max(sizes, default=0) // BLOCK_BYTES)
    columns = _columns(profile, durable, events, cut, passed, top)
    found = []
    inner: dict[int | None, list[tuple[BlockVersion, ...]]] = {}  # sizes of one write differ in their last block only
    for size, (maker, op) in sizes.items():
        last = -(-size // BLOCK_BYTES) - 1
        if maker not in inner:
            inner[maker] = [_newest_first(profile.shown(column, maker, last=False)) for column in columns[:-1]]
        whole = inner[maker][: max(0, last)]
        if last >= 0:
            whole.append(_newest_first(profile.shown(columns[last], maker, last=True), size % BLOCK_BYTES))
        if all(whole):
            found.append(Sized(size, maker, op, tuple(whole), math.prod(map(len, whole))))
    found.reverse()
    return Variants(tuple(found), sum(sized.count for sized in found))


def _newest_first(versions: list[BlockVersion], inside: int = 0) -> tuple[BlockVersion, ...]:
    """Different contents only, cut to ``inside`` bytes where that is not the whole block."""
    if len(versions) == 1 and not inside:
        return (versions[0],)
    kept: dict[bytes, BlockVersion] = {}
    for version in reversed(versions):
        data = version.data if not inside else version.data[:inside].ljust(BLOCK_BYTES, b"\0")
        shown = version if data == version.data else BlockVersion(version.event, version.op, data, mark=version.mark)
        kept.setdefault(data, shown)
    return tuple(kept.values())


def _sizes(profile: Profile, start: int, events: Sequence[Event], cut: int | None, passed: Passed) -> _Sizes:
    """Each size that may show, oldest first, with the growing write that made it."""
    sizes: _Sizes = {start: (None, 0)}
    for index, event in enumerate(events):
        if event.kind == "size" and (cut is not None or index < max(passed)):
            if cut is not None and event.position > cut:
                break
            sizes = {event.size: (None, event.op)}
        elif event.kind == "size":
            sizes.pop(event.size, None)
            sizes[event.size] = None, event.op
        elif event.grows and (cut is None or profile.growth_shows(event.before, cut)):
            _grow(sizes, profile.sizes(event.old, event.size), (index, event.op), keep=cut is None)
        shows = cut is not None and event.position <= cut
        if event.kind == "over" and shows and profile.drops_size_zero("over"):
            _drop_zero(sizes)
        if event.grows and profile.drops_size_zero("size"):
            _drop_zero(sizes)
        if event.synced and index < passed.synced:
            _, least = event.forces(profile)
            sizes = {size: made for size, made in sizes.items() if size >= least}
        if index + 1 == passed.swept:
            sizes = {event.size: sizes[event.size]}
    return sizes


def _grow(sizes: _Sizes, steps: list[int], maker: tuple[int, int], *, keep: bool) -> None:
    for size in steps:
        if keep:  # without an order a size of an earlier time says nothing about who made it
            sizes.pop(size, None)
        sizes[size] = maker


def _drop_zero(sizes: _Sizes) -> None:
    if len(sizes) > 1:
        sizes.pop(0, None)


def _columns(  # noqa: PLR0913, PLR0917 - what a file is made of
    profile: Profile, durable: Content, events: Sequence[Event], cut: int | None, passed: Passed, top: int
) -> list[list[BlockVersion]]:
    """Of each of the first ``top`` blocks the versions that may be on disk, oldest first."""
    held = durable.blocks[:top]
    columns = [[BlockVersion(-1, 0, block)] for block in held]
    columns += [[BlockVersion(-1, 0, _ZEROS, absent=True)] for _ in range(top - len(held))]
    end = top  # blocks from here on were freed by a truncation that does not show: nothing later shows in them
    for index, event in enumerate(events):
        if event.kind == "over" or (event.kind == "size" and event.size >= event.old):
            continue
        shows = cut is None or event.position <= cut
        if event.kind == "size":
            freed = -(-event.size // BLOCK_BYTES)
            gone = BlockVersion(index, event.op, _ZEROS, absent=True)
            for block in range(freed, end) if shows else ():
                columns[block] = profile.freed(gone, columns[block]) if cut is None and index >= max(passed) else [gone]
            end = end if shows else min(end, freed)
        for block in range(event.blocks.start, min(event.blocks.stop, end)):
            versions, new = columns[block], BlockVersion(index, event.op, event.content.blocks[block])
            tears = torn(new, versions) if profile.tears_sectors else []
            if event.kind == "size" and shows:
                columns[block] = profile.cut([*tears, *versions], new, event.size % BLOCK_BYTES)
            else:
                swept = index < passed.swept and profile.sync_forces(event.old, block)
                columns[block] = [new] if swept else [*versions, *tears, new]
        if event.grows:
            _fill(profile, columns[:end], event, index)
        if event.synced and index < passed.synced:
            _force(profile, columns[:end], event)
    _sweep(columns, events[: passed.swept])
    return columns


def _sweep(columns: list[list[BlockVersion]], swept: Sequence[Event]) -> None:
    """A size that a sync has forced came with the bytes of its last block (F1)."""
    sized = [index for index, event in enumerate(swept) if event.kind == "size" or event.grows]
    last = (swept[sized[-1]].size - 1) // BLOCK_BYTES if sized and swept[sized[-1]].grows else len(columns)
    if last < len(columns):
        columns[last] = [version for version in columns[last] if version.event >= sized[-1]]


def _force(profile: Profile, columns: list[list[BlockVersion]], event: Event) -> None:
    """Of the pages that a write has forced only the newest version is left."""
    pages, _ = event.forces(profile)
    for block, versions in enumerate(columns[: pages.stop]):
        if block >= pages.start and block not in event.unwritten:
            del versions[:-1]


def _fill(profile: Profile, columns: list[list[BlockVersion]], event: Event, index: int) -> None:
    """The old last block may be written once more by a write behind it: the same bytes, and a size of its own."""
    block = profile.filled(event.old, event.blocks.start)
    if block is not None and block < len(columns):
        columns[block].append(replace(columns[block][-1], event=index))
