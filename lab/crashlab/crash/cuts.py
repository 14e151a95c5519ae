"""Metadata cuts: at one moment, each set of names that may be on disk, with what its files may hold.

A :class:`Cut` is one set of names with a :class:`Slot` per file that may come out in several ways. A
cut is numbered; the moment and the number give it back, on every machine. Which cuts there are is
said by the kinds of :class:`Cuts` in :mod:`crashlab.crash.orders`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from bisect import bisect_right
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from crashlab.crash import shapes
from crashlab.crash.moments import DataFloors, Moment
from crashlab.crash.variants import Variants, variants_of
from crashlab.tree import Directory, File, Node, Tree

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from random import Random

    from crashlab.crash.micro import History
    from crashlab.crash.profiles import Profile
    from crashlab.crash.shapes import Shape


@dataclass(frozen=True)
class Slot:
    """One inode of a cut that may come out in several ways: ``heads`` times ``variants``, newest first.

    ``mtime_ns`` is what the running system shows; which time a crash leaves is not modelled.
    """

    inode: int
    paths: tuple[str, ...]
    heads: tuple[Node, ...]
    variants: Variants | None
    mtime_ns: int = 0

    @cached_property
    def count(self) -> int:
        """In how many ways."""
        return len(self.heads) * (1 if self.variants is None else self.variants.count)

    @cached_property
    def key(self) -> tuple[object, ...]:
        """Equal for slots with equal terms. Variants are kept by :class:`Cuts`, so that their id stays theirs."""
        heads = tuple((getattr(head, "mode", 0), getattr(head, "attributes", ())) for head in self.heads)
        return self.paths, heads, None if self.variants is None else id(self.variants)

    def term(self, number: int) -> int:
        """The share in the digest of way ``number``."""
        if self.variants is None:
            return shapes.term_of_node(self.paths, self.heads[number])
        head, inside = divmod(number, self.variants.count)
        node = self.heads[head]
        assert isinstance(node, File)
        return shapes.term_of_file(self.paths, node, *self.variants.part(inside))

    def terms(self) -> list[int]:
        """All shares, in order; only for counts that fit a list."""
        if self.variants is None:
            return [self.term(number) for number in range(len(self.heads))]
        found: list[int] = []
        for head in self.heads:
            assert isinstance(head, File)
            key = shapes.term_of_file(self.paths, head, 0, 1) - shapes.term_of_file(self.paths, head, 0, 0)
            sizes = {sized.size: shapes.key_of_text(f"size {sized.size}") for sized in self.variants.sizes}
            found += [key * (total + sizes[size]) & shapes.MASK for size, total in self.variants.parts()]
        return found

    def node(self, number: int) -> Node:
        """The node of way ``number``, bytes and all."""
        if self.variants is None:
            return self.heads[number]
        head, inside = divmod(number, self.variants.count)
        node = self.heads[head]
        assert isinstance(node, File)
        return replace(node, content=self.variants.content(inside), mtime_ns=self.mtime_ns)


@dataclass(frozen=True)
class Cut:
    """One set of names. ``fixed`` is the digest of all that cannot vary; ``slots`` all files that had events."""

    number: int
    shape: Shape
    slots: tuple[Slot, ...]
    fixed: int

    @cached_property
    def varied(self) -> tuple[Slot, ...]:
        """Those that may come out in several ways."""
        return tuple(slot for slot in self.slots if slot.count > 1)

    @cached_property
    def count(self) -> int:
        """How many states this cut has."""
        return math.prod(slot.count for slot in self.varied)

    def tree(self, numbers: Sequence[int]) -> Tree:
        """The tree in which each varied slot comes out in the way of its number."""
        chosen = iter(numbers)
        nodes = dict(self.shape.nodes)
        for slot in self.slots:
            nodes[slot.inode] = slot.node(next(chosen) if slot.count > 1 else 0)
        return Tree(nodes)


class Cuts(ABC):
    """All cuts of one trace under one profile. Base of the three kinds."""

    def __init__(self, history: History, profile: Profile, rebuilt: Sequence[str]) -> None:
        self.history, self.profile, self.rebuilt = history, profile, rebuilt
        self.data = DataFloors(history)
        self._variants: dict[tuple[int, tuple[int, int], int | None], Variants] = {}
        self._singles: dict[tuple[object, ...], int] = {}
        self._thresholds = {
            inode: [event.before if event.kind == "write" else event.position for event in events]
            for inode, events in history.events.items()
        }

    @abstractmethod
    def count(self, moment: Moment) -> int:
        """How many cuts a moment has, before any is refused."""

    @abstractmethod
    def at(self, moment: Moment, numbers: Iterable[int]) -> Iterator[Cut]:
        """The cuts with these numbers; those that are refused are left out."""

    def oldest(self, moment: Moment) -> int:
        """The number of the cut in which everything is lost that nothing forced."""
        return self.count(moment) - 1

    def standing(self, moment: Moment) -> Iterator[int]:
        """Numbers of cuts, without most of those that would be refused."""
        return iter(range(self.count(moment)))

    def single(self, moment: Moment) -> Iterator[int]:
        """Numbers of cuts in which one thing alone is lost, or alone is there: tried where not all can be."""
        return iter(range(min(2, self.count(moment))))

    def random(self, moment: Moment, picks: Random) -> int:
        """The number of some cut."""
        return picks.randrange(self.count(moment))

    def variants(self, inode: int, moment: Moment, cut: int | None) -> Variants:
        """What a file may hold."""
        span = self.data.span(inode, moment)
        # Two cuts between which nothing of this file lies see the same variants.
        rank = None if cut is None else bisect_right(self._thresholds.get(inode, []), cut, *span)
        key = inode, span, rank
        found = self._variants.get(key)
        if found is None:
            found = self._variants[key] = variants_of(self.profile, *self.data.pending(inode, span), cut)
        return found

    def cut(
        self, number: int, moment: Moment, shape: Shape, order: int | None, heads: Mapping[int, tuple[Node, ...]]
    ) -> Cut:
        """A cut of this shape. ``order`` metadata changes show, None without an order; ``heads`` may vary."""
        slots, fixed, newest = [], 0, self.history.running[moment.started].nodes
        for inode, paths in shape.paths.items():
            node = shape.nodes[inode]
            fixed += shapes.term_of_links(paths)
            if isinstance(node, File) and inode in self.history.events:
                slot = Slot(
                    inode, paths, heads.get(inode, (node,)), self.variants(inode, moment, order), newest[inode].mtime_ns
                )
            elif inode in heads:
                plain = self.variants(inode, moment, order) if isinstance(node, File) else None
                slot = Slot(inode, paths, _with_entries(heads[inode], node), plain)
            else:
                fixed += shapes.term_of_node(paths, node)
                continue
            slots.append(slot)
            if slot.count == 1:
                single = self._singles.get(slot.key)
                if single is None:
                    single = self._singles[slot.key] = slot.term(0)
                fixed += single
        return Cut(number, shape, tuple(slots), fixed & shapes.MASK)


def _with_entries(heads: tuple[Node, ...], node: Node) -> tuple[Node, ...]:
    """The heads of a directory, each with the names of this cut."""
    if not isinstance(node, Directory):
        return heads
    return tuple(replace(head, entries=node.entries) for head in heads if isinstance(head, Directory))
