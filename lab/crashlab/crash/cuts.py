"""Metadata cuts: at one moment, each set of names that may be on disk, with what its files may hold.

A :class:`Cut` is one set of names with a :class:`Slot` per file that may come out in several ways. A
cut is numbered; the moment and the number give it back, on every machine. Which cuts there are is
said by the kinds of :class:`Cuts` in :mod:`crashlab.crash.orders`.

A cut is a handful of numbers: its names are only walked for whoever asks for its shape. Slots are
shared by all cuts in which a file has the same names and the same variants.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_right
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from crashlab.crash import shapes
from crashlab.crash.moments import DataFloors, Moment, Span
from crashlab.crash.variants import Passed, Variants, variants_of
from crashlab.tree import Directory, File, Node, Tree

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from random import Random

    from crashlab.crash.micro import History
    from crashlab.crash.profiles import Profile
    from crashlab.crash.shapes import Shape

CACHED = 1 << 14
"""How many variants and how many slots are kept for the next cut that needs them."""

KEPT = 1 << 12
"""How many sets of names are kept for the next moment in which they may show."""


@dataclass(frozen=True, eq=False)
class Slot:
    """One inode of a cut that may come out in several ways: ``heads`` times ``variants``, newest first."""

    inode: int
    paths: tuple[str, ...]
    heads: tuple[Node, ...]
    variants: Variants | None

    @cached_property
    def count(self) -> int:
        """In how many ways."""
        return len(self.heads) * (1 if self.variants is None else self.variants.count)

    @cached_property
    def first(self) -> int:
        """The share in the digest of its first way, links included."""
        return self.term(0) + self.links

    @cached_property
    def links(self) -> int:
        """The share of the fact that its names are one inode."""
        return shapes.term_of_links(self.paths)

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
            key = shapes.key_of_file(self.paths, head)
            for sized in self.variants.sizes:
                size = shapes.key_of_text(f"size {sized.size}")
                found += [key * (total + size) & shapes.MASK for total in sized.sums()]
        return found

    def node(self, number: int, mtime_ns: int) -> Node:
        """The node of way ``number``, bytes and all, with this time if it is a file."""
        if self.variants is None:
            return self.heads[number]
        head, inside = divmod(number, self.variants.count)
        node = self.heads[head]
        assert isinstance(node, File)
        return replace(node, content=self.variants.content(inside), mtime_ns=mtime_ns)


@dataclass(slots=True, eq=False)
class Cut:
    """One set of names. ``fixed`` is the digest of all that cannot vary; ``slots`` all files that had events.

    ``varied`` are those that may come out in several ways; ``count`` is how many states the cut has.
    Not frozen, as making one would take three times as long; nothing changes it.
    """

    origin: Cuts
    moment: Moment
    number: int
    fixed: int
    slots: tuple[Slot, ...]
    varied: tuple[Slot, ...]
    count: int

    @property
    def shape(self) -> Shape:
        """The names, walked anew."""
        return self.origin.shape_of(self.moment, self.number)

    def tree(self, numbers: Sequence[int]) -> Tree:
        """The tree in which each varied slot comes out in the way of its number.

        Files have the time that the running system shows; which time a crash leaves is not modelled.
        """
        chosen = iter(numbers)
        newest = self.origin.history.running[self.moment.started].nodes
        nodes = dict(self.shape.nodes)
        for slot in self.slots:
            node = slot.node(next(chosen) if slot.count > 1 else 0, newest[slot.inode].mtime_ns)
            named = nodes[slot.inode]
            if isinstance(node, Directory) and isinstance(named, Directory):
                node = replace(node, entries=named.entries)  # a head says nothing about names
            nodes[slot.inode] = node
        return Tree(nodes)


class Cuts(ABC):
    """All cuts of one trace under one profile. Base of the three kinds."""

    def __init__(self, history: History, profile: Profile, rebuilt: Sequence[str]) -> None:
        self.history, self.profile, self.rebuilt = history, profile, tuple(rebuilt)
        self.data = DataFloors(history, profile)
        self.ground = shapes.Ground.of(
            history.trace.base.nodes,
            history.entries.keys(),
            {each.inode for versions in history.entries.values() for each in versions if each.inode is not None},
            history.events.keys() | history.attributes.keys(),
            self.rebuilt,
        )
        self._variants: dict[tuple[int, Span, int | None], Variants] = {}
        self._slots: dict[tuple[object, ...], Slot] = {}
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

    @abstractmethod
    def shape_of(self, moment: Moment, number: int) -> Shape:
        """The names of a cut."""

    def oldest(self, moment: Moment) -> int:
        """The number of the cut in which everything is lost that nothing forced."""
        return self.count(moment) - 1

    def standing(self, moment: Moment, most: int) -> Sequence[int] | None:
        """Numbers of cuts, without most of those that would be refused. None where they are more than ``most``."""
        count = self.count(moment)
        return range(count) if count <= most else None

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
        rank = None if cut is None else bisect_right(self._thresholds.get(inode, ()), cut, span.start, span.end)
        key = inode, span, rank
        found = self._variants.get(key)
        if found is None:
            if len(self._variants) >= CACHED:
                self._variants.clear()
            durable, events = self.data.pending(inode, span)
            passed = Passed(span.synced - span.start, span.swept - span.start)
            found = self._variants[key] = variants_of(self.profile, durable, events, cut, passed)
        return found

    def slot(self, inode: int, paths: tuple[str, ...], heads: tuple[Node, ...], variants: Variants | None) -> Slot:
        """The slot of a file under these names."""
        key = inode, paths, variants, *map(_look, heads)
        found = self._slots.get(key)
        if found is None:
            if len(self._slots) >= CACHED:
                self._slots.clear()
            found = self._slots[key] = Slot(inode, paths, heads, variants)
        return found

    def cut(self, moment: Moment, number: int, fixed: int, slots: Iterable[Slot]) -> Cut:
        """A cut of these slots. ``fixed`` is the share of everything else."""
        varied, count = [], 1
        for slot in (kept := tuple(slots)):
            if slot.count == 1:
                fixed += slot.first
            else:
                fixed += slot.links
                count *= slot.count
                varied.append(slot)
        return Cut(self, moment, number, fixed & shapes.MASK, kept, tuple(varied), count)


def _look(head: Node) -> tuple[object, ...]:
    """What of a head its slot can show. The bytes of a file and the names of a directory stand elsewhere."""
    if isinstance(head, File):
        return head.mode, head.attributes, head.time_set
    if isinstance(head, Directory):
        return head.mode, head.attributes, head.mtime_ns
    return (head,)


def hung_on(hooks: Iterable[shapes.Hook], nodes: Mapping[int, Node]) -> Iterator[tuple[str, bool, int]]:
    """What a table of nodes has where names may change."""
    for hook in hooks:
        directory, name = hook.key
        node = nodes[directory]
        assert isinstance(node, Directory)
        if name in node.entries:
            yield hook.path, hook.shown, node.entries[name]


def names_of(cuts: Cuts, nodes: Mapping[int, Node]) -> dict[int, tuple[str, ...]]:
    """The paths of whatever a trace may change, in a table of nodes that a run has had."""
    names = shapes.hang(hung_on(cuts.ground.hooks, nodes), nodes, {}, cuts.rebuilt)
    assert names is not None, "a recorded tree has no loops"
    return {**cuts.ground.paths, **names[0]}
