"""The three kinds of cuts, by what a profile keeps in order.

*Journal*: a prefix of the metadata changes, and of each file what may show with it. *Whole*: a prefix
of all micro-ops, bytes included. *Entries*: see :mod:`crashlab.crash.entries`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from crashlab.crash import shapes
from crashlab.crash.cuts import KEPT, Cut, Cuts, names_of
from crashlab.crash.entries import EntryCuts
from crashlab.crash.kill import cut_points
from crashlab.crash.micro import History
from crashlab.crash.moments import Moment, journal_floors, whole_floors
from crashlab.crash.states import cut as cut_write
from crashlab.subject import REBUILT
from crashlab.tree import File, Node

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from crashlab import trace as t
    from crashlab.crash.profiles import Profile
    from crashlab.crash.shapes import Shape


@dataclass(frozen=True, slots=True)
class Prefix:
    """A prefix of the chain: the ``files`` that had events, and the share of all else in the digest."""

    fixed: int
    files: tuple[tuple[int, tuple[str, ...], Node], ...]


class JournalCuts(Cuts):
    """A prefix of the metadata changes. Number 0 is the newest."""

    def __init__(self, history: History, profile: Profile, rebuilt: Sequence[str]) -> None:
        super().__init__(history, profile, rebuilt)
        self.floors = journal_floors(history, profile)
        self._prefix = lru_cache(maxsize=KEPT)(self._names_after)

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
            length = prefixes[number]
            prefix = self._prefix(length)
            slots = [
                self.slot(inode, paths, (node,), self.variants(inode, moment, length))
                for inode, paths, node in prefix.files
            ]
            yield self.cut(moment, number, prefix.fixed, slots)

    def shape_of(self, moment: Moment, number: int) -> Shape:
        """The names after so many metadata changes."""
        return shapes.whole(self.history.trees[self.prefixes(moment)[number]].nodes, self.rebuilt)

    def _names_after(self, length: int) -> Prefix:
        nodes = self.history.trees[length].nodes
        fixed, files = self.ground.digest, []
        for inode, paths in names_of(self, nodes).items():
            node = nodes[inode]
            if isinstance(node, File) and inode in self.history.events:
                files.append((inode, paths, node))
            else:
                fixed += shapes.share(paths, node)
        return Prefix(fixed, tuple(files))


class WholeCuts(Cuts):
    """``data=journal``: a prefix of all micro-ops. The crash states are those of a kill. Number 0 is the newest."""

    def __init__(self, history: History, profile: Profile, rebuilt: Sequence[str]) -> None:
        super().__init__(history, profile, rebuilt)
        self.floors = whole_floors(history, profile)
        self.points: list[tuple[int, int | None]] = [(0, None)]
        self._first = [0]
        for op in history.trace.ops:
            if history.running[op.n] is not history.running[op.n - 1]:
                self.points += [(op.n - 1, cut_bytes) for cut_bytes in cut_points(op)]
                self.points.append((op.n, None))
            self._first.append(len(self.points) - 1)
        self._digest = lru_cache(maxsize=KEPT)(self._digest_at)

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
            yield Cut(self, moment, number, self._digest(self.point(moment, number)), (), (), 1)

    def shape_of(self, moment: Moment, number: int) -> Shape:
        """What a kill would leave."""
        return shapes.whole(self._nodes(self.point(moment, number)), self.rebuilt)

    def _nodes(self, point: tuple[int, int | None]) -> Mapping[int, Node]:
        done, cut_bytes = point
        tree = self.history.running[done]
        return (tree if cut_bytes is None else tree.apply(cut_write(self.history.trace.op(done + 1), cut_bytes))).nodes

    def _digest_at(self, point: tuple[int, int | None]) -> int:
        nodes = self._nodes(point)
        shares = (shapes.share(paths, nodes[inode]) for inode, paths in names_of(self, nodes).items())
        return (self.ground.digest + sum(shares)) & shapes.MASK


KINDS: dict[str, type[Cuts]] = {"journal": JournalCuts, "whole": WholeCuts, "entries": EntryCuts}


def cuts_of(trace: t.Trace, profile: Profile, *, rebuilt: Sequence[str] = REBUILT) -> Cuts:
    """The cuts of a trace under a profile."""
    return KINDS[profile.order](History.of(trace), profile, rebuilt)
