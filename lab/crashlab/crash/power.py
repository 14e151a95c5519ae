"""What a power loss may leave: every moment, every metadata cut, every variant of every file.

For each moment the cuts with the most variants come first: many variants mean missing barriers. Of
each cut first the newest and the oldest state, then all. A cut with at most ``bound`` states is
gone through whole; of a larger one its core and ``sample`` seeded picks; with ``edges`` the core of a
large file is small, as it takes only first, middle and last blocks and sizes. Nothing is built while
enumerating: a state is a recipe of numbers and a sum of digests; :meth:`PowerLoss.tree` follows it.

Effects and acks before the crash stay done. The moment is part of the digest only by their number.
Not modelled: reordering between threads, a drive that lies, damage to durable bytes.
"""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from crashlab import trace as t
from crashlab.crash import shapes
from crashlab.crash.cuts import CACHED
from crashlab.crash.moments import Moment, moment_after, moments_of
from crashlab.crash.orders import cuts_of
from crashlab.subject import REBUILT

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from crashlab.crash.cuts import Cut, Slot
    from crashlab.crash.profiles import Profile
    from crashlab.tree import Tree

BOUND = 4096
_CACHED_TERMS = 1 << 18
_ENDS = 2


class Recipe(NamedTuple):
    """One state: ``done`` ops completed, number of its cut, per varied file its variant; and its digest."""

    done: int
    cut: int
    variants: tuple[int, ...]
    digest: int


@dataclass
class Counts:
    """``states`` in the model, ``reached`` of them, ``unique`` digests, ``skipped`` states and cuts."""

    moments: int = 0
    states: int = 0
    reached: int = 0
    unique: int = 0
    skipped: int = 0
    skipped_cuts: int = 0
    sampled: int = 0


class PowerLoss:
    r"""The states that a power loss may leave of one trace, under one profile.

    >>> from crashlab.crash.profiles import parse_profile
    >>> from crashlab.tree import Tree
    >>> ops = (t.Create(n=1, path="a", inode=7), t.Write(n=2, path="a", inode=7, offset=0, data=b"hi"))
    >>> loss = PowerLoss(t.Trace(root="/r", base=Tree.empty(), ops=ops), parse_profile("ext4"))
    >>> sorted(node.content.read() for node in (loss.tree(state).node("a") for state in loss.states()) if node)
    [b'', b'\x00\x00', b'hi']
    """

    def __init__(  # noqa: PLR0913 - options, each by its name
        self,
        trace: t.Trace,
        profile: Profile,
        *,
        bound: int = BOUND,
        seed: int = 0,
        rebuilt: Sequence[str] = REBUILT,
        sample: int | None = None,
        edges: bool = False,
        since: int = 0,
    ) -> None:
        self.trace, self.profile = trace, profile
        self.cuts = cuts_of(trace, profile, rebuilt=rebuilt)
        self.moments = {moment.done: moment for moment in moments_of(trace) if moment.done >= since}
        self.counts = Counts()
        self._bound, self._seed = bound, seed
        self._sample = bound if sample is None else sample
        self._edges = edges
        self._terms: dict[Slot, list[int]] = {}
        self._cached = 0
        self._outside = _outsides(trace)

    def states(self) -> Iterator[Recipe]:
        """Each state once, the last moment first. Memory grows by one digest per state."""
        self.counts = Counts(moments=len(self.moments))
        seen: set[int] = set()
        told = None
        for moment in sorted(self.moments.values(), reverse=True):
            outside = self.outside(moment.done)
            if outside != told:  # two moments between which nothing was told share most of their cuts
                told = outside
                done: set[tuple[int, tuple[Slot, ...]]] = set()
            numbers, core = self._numbers(moment)
            cuts = []
            for cut in self.cuts.at(moment, numbers):
                if self._again(seen, done, cut, outside):
                    self._count(cut, cut.count, 0 if core is None or cut.number in core else cut.count)
                else:
                    cuts.append(cut)
            cuts.sort(key=_most_first)
            for cut in cuts:
                yield from self._new(seen, cut, outside, _ends(cut))
            for cut in cuts:
                yield from self._all(seen, cut, outside, core)
            self.counts.unique = len(seen)

    def ends(self, done: int) -> Iterator[Recipe]:
        """Of each cut of the moment after ``done`` ops, the newest and the oldest state."""
        moment = self.moments[done]
        for cut in self.cuts_at(moment):
            yield from self._new(set(), cut, self.outside(done), _ends(cut))

    def at(self, done: int) -> Iterator[Recipe]:
        """Each state of the moment after ``done`` ops, within the bound; the ends of each cut first."""
        moment, seen = self.moments[done], set[int]()
        numbers, core = self._numbers(moment)
        cuts = list(self.cuts.at(moment, numbers))
        for cut in cuts:
            yield from self._new(seen, cut, self.outside(done), _ends(cut))
        for cut in cuts:
            yield from self._all(seen, cut, self.outside(done), core)

    def moment(self, done: int) -> Moment:
        """The moment after ``done`` ops, whether or not states are enumerated there."""
        return self.moments.get(done) or moment_after(self.trace, done)

    def tree(self, recipe: Recipe) -> Tree:
        """The tree of a state."""
        (cut,) = self.cuts.at(self.moment(recipe.done), [recipe.cut])
        return cut.tree(recipe.variants)

    def outside(self, done: int) -> int:
        """The share in the digest of the effects and acks among the first ``done`` ops."""
        return self._outside[done]

    def cuts_at(self, moment: Moment) -> list[Cut]:
        """The cuts of a moment: all, or where there are more than ``bound``, the ends, single losses and a sample."""
        return list(self.cuts.at(moment, self._numbers(moment)[0]))

    def _numbers(self, moment: Moment) -> tuple[Iterable[int], Collection[int] | None]:
        """The numbers of the cuts to take, and where they are not all, those that no chance picked."""
        standing = self.cuts.standing(moment, self._bound)
        if standing is not None:
            return standing, None
        core = {0: None, self.cuts.oldest(moment): None} | dict.fromkeys(self.cuts.single(moment))
        picks = random.Random(f"{self._seed} {moment.done}")  # noqa: S311 - a sample, no secret
        sample = dict.fromkeys(self.cuts.random(moment, picks) for _ in range(self._sample))
        chosen = core | sample
        self.counts.skipped_cuts += self.cuts.count(moment) - len(chosen)
        return chosen, core

    def _again(self, seen: set[int], done: set[tuple[int, tuple[Slot, ...]]], cut: Cut, outside: int) -> bool:
        """Whether every state of a cut is known to have been met. ``done`` keeps the cuts where that saves work."""
        if cut.count == 1:
            return (cut.fixed + outside) & shapes.MASK in seen
        if cut.count == _ENDS or cut.count > self._bound:
            return False
        key = cut.fixed, cut.varied
        if key in done:
            return True
        if len(done) < CACHED:
            done.add(key)
        return False

    def _count(self, cut: Cut, reached: int, sampled: int) -> None:
        self.counts.states += cut.count
        self.counts.reached += reached
        self.counts.sampled += sampled
        self.counts.skipped += cut.count - reached

    def _all(self, seen: set[int], cut: Cut, outside: int, core: Collection[int] | None) -> Iterable[Recipe]:
        """Every state of a cut that fits the bound; else its core and a sample."""
        by_chance = core is not None and cut.number not in core
        if cut.count <= self._bound:
            self._count(cut, cut.count, cut.count if by_chance else 0)
            return self._whole(seen, cut, outside) if cut.count > _ENDS else ()  # its ends may be all
        picks = random.Random(f"{self._seed} {cut.moment.done} {cut.number}")  # noqa: S311 - a sample, no secret
        inner = dict.fromkeys(_core(cut, edges=self._edges))
        sample = (tuple(picks.randrange(slot.count) for slot in cut.varied) for _ in range(self._sample))
        chosen = inner | dict.fromkeys(sample)
        self._count(cut, len(chosen), len(chosen) - (0 if by_chance else len(inner)))
        return self._new(seen, cut, outside, chosen)

    def _whole(self, seen: set[int], cut: Cut, outside: int) -> Iterator[Recipe]:
        done, number = cut.moment.done, cut.number
        *lists, last = (self._terms_of(slot) for slot in cut.varied)
        numbers = itertools.product(*(range(slot.count) for slot in cut.varied))
        totals = [cut.fixed + outside]
        for terms in lists:
            totals = [total + term for total in totals for term in terms]
        for total in totals:
            for term in last:
                digest = (total + term) & shapes.MASK
                variants = next(numbers)
                if digest not in seen:
                    seen.add(digest)
                    yield Recipe(done, number, variants, digest)

    def _new(self, seen: set[int], cut: Cut, outside: int, chosen: Iterable[tuple[int, ...]]) -> Iterator[Recipe]:
        fixed = cut.fixed + outside
        terms = [self._terms_of(slot).__getitem__ if slot.count <= self._bound else slot.term for slot in cut.varied]
        for variants in chosen:
            total = fixed
            for term, number in zip(terms, variants, strict=True):
                total += term(number)
            digest = total & shapes.MASK
            if digest not in seen:
                seen.add(digest)
                yield Recipe(cut.moment.done, cut.number, variants, digest)

    def _terms_of(self, slot: Slot) -> list[int]:
        found = self._terms.get(slot)
        if found is None:
            if self._cached > _CACHED_TERMS:
                self._terms.clear()
                self._cached = 0
            found = self._terms[slot] = slot.terms()
            self._cached += len(found)
        return found


def _outsides(trace: t.Trace) -> list[int]:
    """The share in the digest of what was told outside, after each number of ops."""
    effects = acks = 0
    shares = [0]
    for op in trace.ops:
        effects += isinstance(op, t.Effect)
        acks += isinstance(op, t.Ack)
        shares.append(shapes.key_of_text(f"outside {effects} {acks}") if effects or acks else 0)
    return shares


def _ends(cut: Cut) -> tuple[tuple[int, ...], ...]:
    """All newest, and all oldest."""
    if not cut.varied:
        return ((),)
    return (0,) * len(cut.varied), tuple([slot.count - 1 for slot in cut.varied])


def _most_first(cut: Cut) -> int:
    return -cut.count


def _core(cut: Cut, *, edges: bool) -> Iterator[tuple[int, ...]]:
    """Per file its own core, with the others all newest and all oldest."""
    newest, oldest = _ends(cut)
    for at, slot in enumerate(cut.varied):
        inside = slot.variants.core(edges=edges) if slot.variants is not None else range(slot.count)
        for number in inside:
            for rest in (newest, oldest):
                yield (*rest[:at], number, *rest[at + 1 :])
