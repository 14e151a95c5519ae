"""Cuts without a common order: any combination of entry versions that rule B4 lets stand.

For file systems that keep no order between names, as btrfs and posix: each entry of a directory falls
back by itself.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

from crashlab.crash import shapes
from crashlab.crash.cuts import KEPT, Cut, Cuts, hung_on
from crashlab.crash.moments import Choice, EntryFloors, Moment
from crashlab.tree import Directory, File, Node

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from random import Random

    from crashlab.crash.cuts import Slot
    from crashlab.crash.micro import History, Key
    from crashlab.crash.profiles import Profile
    from crashlab.crash.shapes import Shape

WALK = 32
"""How many steps of a walk through the entries are worth one cut."""


@dataclass
class View:
    """What the entries may mean at one moment.

    ``free`` are those that may mean several things, as their key, their choices, and what a step of
    the choice adds to the number of a cut. ``placed`` are the entries that cannot, with their inode;
    ``hung`` and ``below`` are what every cut has, as :func:`crashlab.crash.shapes.hang` takes it.
    """

    moment: Moment
    choices: dict[Key, tuple[Choice, ...]]
    table: dict[int, Node]
    heads: dict[int, tuple[Node, ...]]
    required: frozenset[int]
    free: list[tuple[Key, tuple[Choice, ...], int]] = field(default_factory=list)
    placed: list[tuple[Key, int]] = field(default_factory=list)
    hung: list[tuple[str, bool, int]] = field(default_factory=list)
    below: dict[int, tuple[tuple[str, int], ...]] = field(default_factory=dict)
    found: dict[tuple[int, tuple[str, ...]], tuple[int, Slot | None]] = field(default_factory=dict)

    @cached_property
    def homes(self) -> dict[int, list[tuple[int, int]]]:
        """Of what must keep a name and may lose it, the free entries and choices that name it."""
        named = {inode for _, inode in self.placed}
        homes: dict[int, list[tuple[int, int]]] = {inode: [] for inode in sorted(self.required - named)}
        for at, (_, choices, _) in enumerate(self.free):
            for index, choice in enumerate(choices):
                if choice.inode in homes:
                    homes[choice.inode].append((at, index))
        return {inode: places for inode, places in homes.items() if places}

    def __post_init__(self) -> None:
        weight = 1
        for key, choices in reversed(self.choices.items()):
            if len(choices) > 1:
                self.free.append((key, choices, weight))
                weight *= len(choices)
            elif choices[0].inode is not None:
                self.placed.append((key, choices[0].inode))
        self.free.reverse()


class EntryCuts(Cuts):
    """Every combination of entry versions. Number 0 is all newest."""

    def __init__(self, history: History, profile: Profile, rebuilt: Sequence[str]) -> None:
        super().__init__(history, profile, rebuilt)
        self.floors = EntryFloors(history, profile)
        self._last: View | None = None
        self._named = lru_cache(maxsize=KEPT)(self._named_after)
        self._hooks = {hook.key: hook for hook in self.ground.hooks}

    def view(self, moment: Moment) -> View:
        """All that the cuts of a moment have in common. That of the last moment asked for is kept."""
        if self._last is None or self._last.moment != moment:
            keys = [key for key, versions in self.history.entries.items() if versions[1].op <= moment.started]
            choices = {key: self.floors.choices(key, moment) for key in keys}
            required = self.floors.required(self._named(self.history.issued[moment.started]), moment.done)
            table = self._table(moment, choices)
            self._last = View(moment, choices, table, self._heads(moment), required)
            self._fill(self._last)
        return self._last

    def _named_after(self, length: int) -> frozenset[int]:
        """The inodes that have a name after so many changes, and may lose it."""
        nodes = self.history.trees[length].nodes
        names = shapes.hang(hung_on(self.ground.hooks, nodes), nodes, {}, self.rebuilt)
        assert names is not None, "a recorded tree has no loops"
        return frozenset(names[1])

    def choices(self, moment: Moment) -> dict[Key, tuple[Choice, ...]]:
        """Per entry that the trace has changed, what it may mean."""
        return self.view(moment).choices

    def count(self, moment: Moment) -> int:
        """The product over the entries."""
        return math.prod(len(choices) for choices in self.choices(moment).values())

    def pick(self, moment: Moment, number: int) -> dict[Key, Choice]:
        """What each entry means in cut ``number``."""
        picked = {key: choices[0] for key, choices in self.choices(moment).items()}
        for key, choices, weight in self.view(moment).free:
            picked[key] = choices[number // weight % len(choices)]
        return picked

    def number(self, moment: Moment, picked: Mapping[Key, Choice]) -> int:
        """The number of the cut in which the entries mean this."""
        return sum(choices.index(picked[key]) * weight for key, choices, weight in self.view(moment).free)

    def at(self, moment: Moment, numbers: Iterable[int]) -> Iterator[Cut]:
        """The cuts with these numbers that rule B4 lets stand, and in which no directory lies below itself."""
        view = self.view(moment)
        is_kept, hooks = self.profile.is_kept, self._hooks
        free = [(hooks.get(key), key, choices, weight) for key, choices, weight in view.free]
        for number in numbers:
            hung, added = view.hung.copy(), view.below
            for hook, key, choices, weight in free:
                inode = choices[number // weight % len(choices)].inode
                if inode is None:
                    continue
                if hook is not None:
                    hung.append((hook.path, hook.shown, inode))
                else:
                    added = {**added, key[0]: (*added.get(key[0], ()), (key[1], inode))}
            names = shapes.hang(hung, view.table, added, self.rebuilt)
            if names is not None and is_kept(view.required, frozenset(names[1])):
                yield self._cut_of(view, number, names[0])

    def _fill(self, view: View) -> None:
        """Add what hangs from hooks in every cut, and what directories that may move always have."""
        view.hung += hung_on(self.ground.hooks, view.table)
        for key, inode in view.placed:
            hook = self._hooks.get(key)
            if hook is not None:
                view.hung.append((hook.path, hook.shown, inode))
            else:
                view.below[key[0]] = (*view.below.get(key[0], ()), (key[1], inode))

    def _cut_of(self, view: View, number: int, names: Mapping[int, tuple[str, ...]]) -> Cut:
        fixed, slots = self.ground.digest, []
        for entry in (*self.ground.paths.items(), *names.items()):
            found = view.found.get(entry)
            if found is None:
                found = view.found[entry] = self._shown(view, *entry)
            share, slot = found
            fixed += share
            if slot is not None:
                slots.append(slot)
        return self.cut(view.moment, number, fixed, slots)

    def _shown(self, view: View, inode: int, paths: tuple[str, ...]) -> tuple[int, Slot | None]:
        """The share of what cannot vary, or the slot of what may."""
        node = view.table[inode]
        events = isinstance(node, File) and inode in self.history.events
        if not events and inode not in view.heads:
            return shapes.share(paths, node), None
        variants = self.variants(inode, view.moment, None) if isinstance(node, File) else None
        return 0, self.slot(inode, paths, view.heads.get(inode, (node,)), variants)

    def shape_of(self, moment: Moment, number: int) -> Shape:
        """The names of a cut."""
        return shapes.whole(with_names(self.table(moment), self.pick(moment, number)), self.rebuilt)

    def oldest(self, moment: Moment) -> int:
        """The cut in which each entry means what it durably meant, where it still may."""
        return sum(self._oldest(key, choices, moment) * weight for key, choices, weight in self.view(moment).free)

    def _oldest(self, key: Key, choices: tuple[Choice, ...], moment: Moment) -> int:
        durable = self.floors.durable(key, moment)
        same = (index for index, each in enumerate(choices) if each.inode == durable and not each.vanished)
        return next(same, len(choices) - 1)

    def standing(self, moment: Moment, most: int) -> Sequence[int] | None:
        """Numbers of the cuts in which every inode that must keep a name is named by some entry.

        None where they are more than ``most``; also where so many ways lead nowhere that the walk would take long.
        """
        free = self.view(moment).free
        needs, risky = self._needs(moment)
        found: list[int] = []
        stack, steps = [(0, 0, frozenset[int]())], 0
        while stack:
            at, number, named = stack.pop()
            steps += 1
            if len(found) > most or steps > WALK * (most + 1):
                return None
            if at == len(free):
                found.append(number)
                continue
            _, choices, weight = free[at]
            kept = not needs[at] or self.profile.is_kept(needs[at], named)
            for index in range(len(choices) - 1, -1, -1):
                inode = choices[index].inode
                if not kept and inode not in needs[at]:  # it would not help
                    continue
                now = named | {inode} if inode in risky else named
                if kept or self.profile.is_kept(needs[at], now):
                    stack.append((at + 1, number + index * weight, now))
        return found

    def _needs(self, moment: Moment) -> tuple[list[frozenset[int]], frozenset[int]]:
        """Per free entry the inodes that by B4 must have been named by then: nothing later can name them."""
        view = self.view(moment)
        at_risk = set(view.required) - {inode for _, _, inode in view.hung}
        for inode, node in view.table.items() if at_risk else ():
            if isinstance(node, Directory) and inode not in self.ground.named:
                at_risk -= set(node.entries.values()).union(child for _, child in view.below.get(inode, ()))
        risky = frozenset(at_risk)
        needs: list[frozenset[int]] = []
        for _, choices, _ in reversed(view.free):
            last = {choice.inode for choice in choices if choice.inode is not None} & at_risk
            needs.append(frozenset(last))
            at_risk -= last
        return needs[::-1], risky

    def single(self, moment: Moment) -> Iterator[int]:
        """All newest or all oldest but one entry, which goes through all that it may mean."""
        oldest = self.oldest(moment)
        for _, choices, weight in self.view(moment).free:
            there = oldest // weight % len(choices)
            for index in range(len(choices)):
                yield index * weight
                yield oldest + (index - there) * weight

    def random(self, moment: Moment, picks: Random) -> int:
        """Some meaning for each entry; what must keep a name gets one of those that it may have."""
        view = self.view(moment)
        free, homes = view.free, view.homes
        indices = [int(picks.random() * len(choices)) for _, choices, _ in free]
        if homes:
            named = {choices[index].inode for (_, choices, _), index in zip(free, indices, strict=True)}
            for inode, places in homes.items():
                if inode not in named:
                    at, index = places[int(picks.random() * len(places))]
                    indices[at] = index
        return sum(index * weight for (_, _, weight), index in zip(free, indices, strict=True))

    def table(self, moment: Moment) -> dict[int, Node]:
        """All nodes at a moment; of the directories only the entries that the trace has not changed."""
        return self.view(moment).table

    def _table(self, moment: Moment, changed: Iterable[Key]) -> dict[int, Node]:
        nodes = dict(self.history.running[moment.started].nodes)
        names: dict[int, set[str]] = {}
        for directory, name in changed:
            names.setdefault(directory, set()).add(name)
        for directory, gone in names.items():
            node = nodes[directory]
            assert isinstance(node, Directory)
            nodes[directory] = replace(node, entries={k: v for k, v in node.entries.items() if k not in gone})
        return nodes

    def heads(self, moment: Moment) -> dict[int, tuple[Node, ...]]:
        """Mode and attributes that an inode may have, newest first: a prefix of its changes."""
        return self.view(moment).heads

    def _heads(self, moment: Moment) -> dict[int, tuple[Node, ...]]:
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
