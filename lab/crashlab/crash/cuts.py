"""Metadata cuts: at one moment, each set of names that may be on disk, with what its files may hold.

Three kinds, by what a profile keeps in order. *Journal*: a prefix of the metadata changes. *Whole*: a
prefix of all micro-ops, bytes included. *Entries*: any combination of entry versions that rule B4
lets stand. A cut is numbered; the number and the moment give it back, on every machine.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from crashlab.crash import shapes
from crashlab.crash.kill import cut_points
from crashlab.crash.micro import History, Key
from crashlab.crash.moments import Choice, DataFloors, EntryFloors, Moment, journal_floors, whole_floors
from crashlab.crash.states import cut as cut_write
from crashlab.crash.variants import Variants, variants_of
from crashlab.tree import Directory, File, Node, Tree

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from crashlab import trace as t
    from crashlab.crash.profiles import Profile
    from crashlab.crash.shapes import Shape


@dataclass(frozen=True)
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
        return replace(node, content=self.variants.content(inside))


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

    def variants(self, inode: int, moment: Moment, cut: int | None) -> Variants:
        """What a file may hold."""
        span = self.data.span(inode, moment)
        # Two cuts between which nothing of this file lies see the same variants.
        rank = None if cut is None else sum(each <= cut for each in self._thresholds.get(inode, [])[span[0] : span[1]])
        key = inode, span, rank
        found = self._variants.get(key)
        if found is None:
            found = self._variants[key] = variants_of(self.profile, *self.data.pending(inode, span), cut)
        return found

    def cut(
        self, number: int, moment: Moment, shape: Shape, order: int | None, heads: Mapping[int, tuple[Node, ...]]
    ) -> Cut:
        """A cut of this shape. ``order`` metadata changes show, None without an order; ``heads`` may vary."""
        slots, fixed = [], 0
        for inode, paths in shape.paths.items():
            node = shape.nodes[inode]
            fixed += shapes.term_of_links(paths)
            if isinstance(node, File) and inode in self.history.events:
                slot = Slot(inode, paths, heads.get(inode, (node,)), self.variants(inode, moment, order))
            elif inode in heads:
                variants = None
                if isinstance(node, File):
                    variants = variants_of(self.profile, node.content, (), order)
                slot = Slot(inode, paths, _with_entries(heads[inode], node), variants)
            else:
                fixed += shapes.term_of_node(paths, node)
                continue
            slots.append(slot)
            if slot.count == 1:
                fixed += slot.term(0)
        return Cut(number, shape, tuple(slots), fixed & shapes.MASK)


def _with_entries(heads: tuple[Node, ...], node: Node) -> tuple[Node, ...]:
    """The heads of a directory, each with the names of this cut."""
    if not isinstance(node, Directory):
        return heads
    return tuple(replace(head, entries=node.entries) for head in heads if isinstance(head, Directory))


class JournalCuts(Cuts):
    """A prefix of the metadata changes. Number 0 is the newest."""

    def __init__(self, history: History, profile: Profile, rebuilt: Sequence[str]) -> None:
        super().__init__(history, profile, rebuilt)
        self.floors = journal_floors(history, profile)
        self._shapes: dict[int, Shape] = {}

    def prefixes(self, moment: Moment) -> Sequence[int]:
        """The lengths of the chain that may show, longest first."""
        return self.profile.prefixes(self.floors.at(moment.done), self.history.issued[moment.started])[::-1]

    def count(self, moment: Moment) -> int:
        """At most one per metadata change, and one."""
        return len(self.prefixes(moment))

    def at(self, moment: Moment, numbers: Iterable[int]) -> Iterator[Cut]:
        """The cuts with these numbers."""
        prefixes = self.prefixes(moment)
        for number in numbers:
            yield self.cut(number, moment, self.shape(prefixes[number]), prefixes[number], {})

    def shape(self, prefix: int) -> Shape:
        """The names after ``prefix`` metadata changes."""
        found = self._shapes.get(prefix)
        if found is None:
            found = shapes.survey(self.history.trees[prefix].nodes, self.rebuilt)
            assert found is not None, "a recorded tree has no loops"
            self._shapes[prefix] = found
        return found


class WholeCuts(Cuts):
    """``data=journal``: a prefix of all micro-ops. The crash states are those of a kill. Number 0 is the newest."""

    def __init__(self, history: History, profile: Profile, rebuilt: Sequence[str]) -> None:
        super().__init__(history, profile, rebuilt)
        self.floors = whole_floors(history)
        self.points: list[tuple[int, int | None]] = [(0, None)]
        self._first = [0]
        for op in history.trace.ops:
            if history.running[op.n] is not history.running[op.n - 1]:
                self.points += [(op.n - 1, cut_bytes) for cut_bytes in cut_points(op)]
                self.points.append((op.n, None))
            self._first.append(len(self.points) - 1)

    def count(self, moment: Moment) -> int:
        """One per op that changed something and is not forced, its 4096 steps, and one."""
        return self._first[moment.started] - self._first[self.floors.at(moment.done)] + 1

    def point(self, moment: Moment, number: int) -> tuple[int, int | None]:
        """How many ops cut ``number`` keeps, and how many bytes of the next one."""
        return self.points[self._first[moment.started] - number]

    def number(self, moment: Moment, lost: int, byte: int | None) -> int:
        """The number of the cut that loses op ``lost`` and all later ones, the first ``byte`` bytes excepted."""
        last = self._first[moment.started]
        if byte is None:
            return last - self._first[lost - 1] if 1 <= lost <= len(self.history.trace.ops) else -1
        return last - self.points.index((lost - 1, byte)) if (lost - 1, byte) in self.points else -1

    def at(self, moment: Moment, numbers: Iterable[int]) -> Iterator[Cut]:
        """The cuts with these numbers."""
        for number in numbers:
            done, cut_bytes = self.point(moment, number)
            tree = self.history.running[done]
            if cut_bytes is not None:
                tree = tree.apply(cut_write(self.history.trace.op(done + 1), cut_bytes))
            shape = shapes.survey(tree.nodes, self.rebuilt)
            assert shape is not None, "a recorded tree has no loops"
            yield Cut(number, shape, (), shapes.digest_of_tree(Tree(shape.nodes)))


class EntryCuts(Cuts):
    """Every combination of entry versions. Number 0 is all newest."""

    def __init__(self, history: History, profile: Profile, rebuilt: Sequence[str]) -> None:
        super().__init__(history, profile, rebuilt)
        self.floors = EntryFloors(history, profile)
        self._last: tuple[Moment, dict[Key, tuple[Choice, ...]]] | None = None

    def choices(self, moment: Moment) -> dict[Key, tuple[Choice, ...]]:
        """Per entry that the trace has changed, what it may mean."""
        if self._last is None or self._last[0] != moment:
            keys = [key for key, versions in self.history.entries.items() if versions[1].op <= moment.started]
            self._last = moment, {key: self.floors.choices(key, moment) for key in keys}
        return self._last[1]

    def count(self, moment: Moment) -> int:
        """The product over the entries."""
        return math.prod(len(choices) for choices in self.choices(moment).values())

    def pick(self, moment: Moment, number: int) -> dict[Key, Choice]:
        """What each entry means in cut ``number``."""
        picked: dict[Key, Choice] = {}
        for key, choices in reversed(self.choices(moment).items()):
            number, index = divmod(number, len(choices))
            picked[key] = choices[index]
        return picked

    def number(self, moment: Moment, picked: Mapping[Key, Choice]) -> int:
        """The number of the cut in which the entries mean this."""
        number = 0
        for key, choices in self.choices(moment).items():
            number = number * len(choices) + choices.index(picked[key])
        return number

    def at(self, moment: Moment, numbers: Iterable[int]) -> Iterator[Cut]:
        """The cuts with these numbers that rule B4 lets stand, and in which no directory lies below itself."""
        table = self.table(moment)
        required, heads = self.floors.required(moment), self.heads(moment)
        for number in numbers:
            shape = shapes.survey(with_names(table, self.pick(moment, number)), self.rebuilt)
            if shape is not None and self.profile.is_kept(required, shape.named):
                yield self.cut(number, moment, shape, None, heads)

    def oldest(self, moment: Moment) -> int:
        """The cut in which each entry means what it durably meant, where it still may."""
        picked = {}
        for key, choices in self.choices(moment).items():
            durable = self.floors.durable(key, moment)
            same = [choice for choice in choices if choice.inode == durable and not choice.vanished]
            picked[key] = same[0] if same else choices[-1]
        return self.number(moment, picked)

    def table(self, moment: Moment) -> dict[int, Node]:
        """All nodes at a moment; of the directories only the entries that the trace has not changed."""
        nodes = dict(self.history.running[moment.started].nodes)
        for directory, name in self.choices(moment):
            node = nodes[directory]
            assert isinstance(node, Directory)
            nodes[directory] = replace(node, entries={k: v for k, v in node.entries.items() if k != name})
        return nodes

    def heads(self, moment: Moment) -> dict[int, tuple[Node, ...]]:
        """Mode and attributes that an inode may have, newest first: a prefix of its changes."""
        heads: dict[int, tuple[Node, ...]] = {}
        for inode in self.history.attributes:
            pending = self.attribute_ops(moment, inode)
            newest = self.history.running[moment.started].nodes.get(inode)
            if pending and newest is not None:
                older = (self.history.running[n - 1].nodes[inode] for n in pending)
                heads[inode] = (newest, *older)
        return heads

    def attribute_ops(self, moment: Moment, inode: int) -> list[int]:
        """The changes of mode and attributes that may be lost, newest first."""
        ops = self.history.attributes.get(inode, [])
        forced = self.floors.attributes[inode].at(moment.done) if ops else 0
        return [n for n in ops[forced:] if n <= moment.started][::-1]


def with_names(table: Mapping[int, Node], picked: Mapping[Key, Choice]) -> dict[int, Node]:
    """The table with the entries that were picked."""
    added: dict[int, dict[str, int]] = {}
    for (directory, name), choice in picked.items():
        if choice.inode is not None:
            added.setdefault(directory, {})[name] = choice.inode
    nodes = dict(table)
    for inode, names in added.items():
        node = nodes[inode]
        assert isinstance(node, Directory)
        nodes[inode] = replace(node, entries={**node.entries, **names})
    return nodes


KINDS: dict[str, type[Cuts]] = {"journal": JournalCuts, "whole": WholeCuts, "entries": EntryCuts}


def cuts_of(trace: t.Trace, profile: Profile, *, rebuilt: Sequence[str] = shapes.REBUILT) -> Cuts:
    """The cuts of a trace under a profile."""
    return KINDS[profile.order](History.of(trace), profile, rebuilt)
