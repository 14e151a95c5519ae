"""The three kinds of cuts, by what a profile keeps in order.

*Journal*: a prefix of the metadata changes, and of each file what may show with it. *Whole*: a prefix
of all micro-ops, bytes included. *Entries*: any combination of entry versions that rule B4 lets
stand, for file systems that keep no order between names.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from crashlab.crash import shapes
from crashlab.crash.cuts import Cut, Cuts
from crashlab.crash.kill import cut_points
from crashlab.crash.micro import History, Key
from crashlab.crash.moments import Choice, EntryFloors, Moment, journal_floors, whole_floors
from crashlab.crash.states import cut as cut_write
from crashlab.tree import Directory, Node, Tree

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from random import Random

    from crashlab import trace as t
    from crashlab.crash.profiles import Profile
    from crashlab.crash.shapes import Shape


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

    def standing(self, moment: Moment) -> Iterator[int]:
        """Numbers of the cuts in which every inode that must keep a name is named by some entry."""
        choices = list(self.choices(moment).values())
        needs = [frozenset(need) for need in self._needs(moment)]
        stack = [(0, 0, frozenset[int]())]
        while stack:
            at, number, named = stack.pop()
            if at == len(choices):
                yield number
                continue
            for index in range(len(choices[at]) - 1, -1, -1):
                inode = choices[at][index].inode
                now = named if inode is None else named | {inode}
                if self.profile.is_kept(needs[at], now):
                    stack.append((at + 1, number * len(choices[at]) + index, now))

    def _needs(self, moment: Moment) -> list[set[int]]:
        """Per entry the inodes that by B4 must have been named by then: nothing later can name them."""
        at_risk = set(self.floors.required(moment))
        for node in self.table(moment).values():
            if isinstance(node, Directory):
                at_risk -= set(node.entries.values())
        needs: list[set[int]] = []
        for choices in reversed(self.choices(moment).values()):
            last = {choice.inode for choice in choices if choice.inode is not None} & at_risk
            needs.append(last)
            at_risk -= last
        return needs[::-1]

    def single(self, moment: Moment) -> Iterator[int]:
        """All newest or all oldest but one entry, which goes through all that it may mean."""
        newest, oldest = self.pick(moment, 0), self.pick(moment, self.oldest(moment))
        for key, choices in self.choices(moment).items():
            for choice in choices:
                for rest in (newest, oldest):
                    yield self.number(moment, {**rest, key: choice})

    def random(self, moment: Moment, picks: Random) -> int:
        """Some meaning for each entry; what must keep a name gets one of those that it may have."""
        picked = {key: picks.choice(choices) for key, choices in self.choices(moment).items()}
        homes: dict[int, list[tuple[Key, Choice]]] = {}
        for key, choices in self.choices(moment).items():
            for choice in choices:
                if choice.inode is not None:
                    homes.setdefault(choice.inode, []).append((key, choice))
        for inode in sorted(self.floors.required(moment) & homes.keys()):
            if inode not in {choice.inode for choice in picked.values()}:
                key, choice = picks.choice(homes[inode])
                picked[key] = choice
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
