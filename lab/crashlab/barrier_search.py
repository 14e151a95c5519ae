"""Sets of barriers put to the question whether they mend all that failed; the answers, and what follows from them.

Verdicts are looked up by digest, since a barrier only takes states away; what has none may be judged anew.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from crashlab.barriers import Barrier, position, with_barriers
from crashlab.crash.membership import within
from crashlab.crash.power import BOUND, PowerLoss, Recipe
from crashlab.subject import REBUILT

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from crashlab import trace as t
    from crashlab.crash.profiles import Profile

    Judge = Callable[[t.Trace, PowerLoss, Recipe], bool]

LIMIT_ENUMERATIONS = 200
JUDGED_ANEW = 50
"""So many states without a verdict, evenly spread, are judged of what a set leaves, where the caller can judge."""
LOOKED_AT = 24
"""So many failing states, evenly spread, are looked at where a look at each would take too long."""


class SpentError(Exception):
    """The limit of enumerations is reached."""


@dataclass(frozen=True)
class Limits:
    """How states are enumerated, as in the check that gave the verdicts, and how long barriers are tried.

    ``bound``, ``seed``, ``rebuilt``, ``sample`` and ``edges`` are those of
    :class:`~crashlab.crash.power.PowerLoss`. After about ``limit`` enumerations, or ``time_s`` seconds, the
    best that is known is told. ``anew`` is for how many states a set's claim is proven by a judge.
    """

    bound: int = BOUND
    seed: int = 0
    rebuilt: Sequence[str] = REBUILT
    sample: int | None = None
    edges: bool = False
    anew: int = JUDGED_ANEW
    limit: int = LIMIT_ENUMERATIONS
    time_s: float = float("inf")

    def loss(self, trace: t.Trace, profile: Profile) -> PowerLoss:
        """The states of one trace under one profile."""
        return PowerLoss(
            trace,
            profile,
            bound=self.bound,
            seed=self.seed,
            rebuilt=self.rebuilt,
            sample=self.sample,
            edges=self.edges,
        )


DEFAULT_LIMITS = Limits()


@dataclass
class Seen:
    """What enumerating met: failing states, the last moment of one, states not judged; whether some were left out."""

    failing: dict[int, tuple[PowerLoss, Recipe]]
    unjudged: set[int]
    last: int = 0
    sampled: bool = False

    def some(self) -> list[tuple[PowerLoss, Recipe]]:
        """Some failing states, evenly spread."""
        found = list(self.failing.values())
        return found[:: max(1, -(-len(found) // LOOKED_AT))]


class Search:
    """Asks for sets of barriers whether they mend all; remembers the answers, and what follows from them."""

    def __init__(
        self,
        trace: t.Trace,
        profiles: Collection[Profile],
        bad: Callable[[int], bool | None],
        options: Limits,
        judge: Judge | None,
    ) -> None:
        self.trace, self._bad, self._options, self._judge = trace, bad, options, judge
        self._anew: dict[int, bool] = {}
        self._passed = 0
        self.profiles = list(profiles)
        self.tried = 0
        self.limit = 0
        self._until = time.monotonic() + options.time_s
        self.unjudged: dict[frozenset[Barrier], int] = {}
        self._mending: list[frozenset[Barrier]] = []
        self._failing: list[frozenset[Barrier]] = [frozenset()]
        self.base = self.look(trace)
        self.sampled = self.base.sampled
        self._known = [(loss.outside(recipe.done), loss.tree(recipe)) for loss, recipe in self.base.some()]

    def look(self, trace: t.Trace, *, stop: bool = False, every: int = 0) -> Seen:
        """Enumerate under every profile; with ``stop`` no further than to the first failing state, nor the limit.

        One in ``every`` states without a verdict is judged, if that is not 0.
        """
        seen = Seen({}, set())
        for profile in tuple(self.profiles):
            if stop and self.is_spent:
                raise SpentError
            self.tried += 1
            loss = self._options.loss(trace, profile)
            for recipe in loss.states():
                verdict = self._verdict(loss, recipe, every)
                if stop and time.monotonic() > self._until:
                    raise SpentError
                if verdict is None:
                    seen.unjudged.add(recipe.digest)
                elif verdict:
                    seen.failing.setdefault(recipe.digest, (loss, recipe))
                    seen.last = max(seen.last, recipe.done)
                    if stop:  # the next set is likely to fail there too
                        self.profiles.remove(profile)
                        self.profiles.insert(0, profile)
                        return seen
            seen.sampled |= bool(loss.counts.skipped or loss.counts.skipped_cuts)
        return seen

    @property
    def is_spent(self) -> bool:
        """Whether the limit of enumerations, or of time, is reached."""
        return self.tried >= self.limit or time.monotonic() > self._until

    def mends(self, barriers: Collection[Barrier]) -> bool:
        """Whether no failing state is left. Raises SpentError where that would take one enumeration too many."""
        asked = frozenset(barriers)
        if any(known <= asked for known in self._mending):
            return True
        if any(known >= asked for known in self._failing):
            return False
        longer = with_barriers(self.trace, asked)
        seen = self.look(longer, stop=True)
        mends = not seen.failing and not ((seen.sampled or self.sampled) and self._leaves_known(longer))
        (self._mending if mends else self._failing).append(asked)
        if mends:
            self.sampled |= seen.sampled
            self.unjudged[asked] = len(seen.unjudged)
        return mends

    def holds(self, barriers: frozenset[Barrier]) -> bool:
        """Whether no failing state is left, nor one among some of those left that had no verdict."""
        if not self.mends(barriers):
            return False
        left = self.unjudged.get(barriers, 0)
        if self._judge is None or not left:
            return True
        seen = self.look(with_barriers(self.trace, barriers), stop=True, every=-(-left // max(self._options.anew, 1)))
        if seen.failing:
            self._mending = [known for known in self._mending if not known <= barriers]
            self._failing.append(barriers)
        return not seen.failing

    def _verdict(self, loss: PowerLoss, recipe: Recipe, every: int) -> bool | None:
        verdict = self._bad(recipe.digest)
        if verdict is None and self._judge is not None:
            verdict = self._anew.get(recipe.digest)
            self._passed += verdict is None
            if verdict is None and every and self._passed % every == 0:
                verdict = self._anew[recipe.digest] = self._judge(loss.trace, loss, recipe)
        return verdict

    def best(self) -> frozenset[Barrier]:
        """The smallest set that is known to mend all."""
        return min(self._mending, key=_preferred)

    def order(self, barriers: frozenset[Barrier]) -> tuple[object, ...]:
        """Few barriers first, then few states that nobody judged, then late."""
        return len(barriers), self.unjudged.get(barriers, 0), _preferred(barriers)

    def _leaves_known(self, trace: t.Trace) -> bool:
        """Whether a state that failed before is still possible: where states are sampled, it may just not be met."""
        losses = [self._options.loss(trace, profile) for profile in self.profiles]
        return any(
            loss.outside(moment.done) == outside and within(loss.cuts, moment, tree)
            for outside, tree in self._known
            for loss in losses
            for moment in loss.moments.values()
        )


def _preferred(barriers: Iterable[Barrier]) -> tuple[object, ...]:
    """Few before many, late before early."""
    ordered = sorted(barriers, key=position)
    return len(ordered), sorted(-barrier.after[0] for barrier in ordered), [position(barrier) for barrier in ordered]
