"""The states that a power loss may leave under several profiles at once, each of them once.

The profiles take turns, so that a loss that only one of them allows is met early. Which profiles allow
a state is found out for the few that are shown, by :meth:`Losses.possible`.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from crashlab.crash import recipes
from crashlab.crash.marks import Mark, implied, marks_of
from crashlab.crash.membership import fitting, ways, within
from crashlab.crash.power import BOUND, Counts, PowerLoss, Recipe
from crashlab.crash.states import CrashState
from crashlab.errors import UsageError
from crashlab.subject import REBUILT

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from crashlab import trace as t
    from crashlab.crash.profiles import Profile
    from crashlab.tree import Tree


class Named(NamedTuple):
    """One state of a power loss that is not made yet; ``digest`` tells it from the others of its trace."""

    id: str
    done: int
    digest: int
    make: Callable[[], CrashState]


class Losses:
    """Power losses of one trace, ``since`` so many of its ops completed; the other options are those of
    :class:`~crashlab.crash.power.PowerLoss`.

    >>> from crashlab import trace as t
    >>> from crashlab.crash.profiles import parse_profiles
    >>> from crashlab.tree import Tree
    >>> ops = (t.Create(n=1, path="a", inode=7), t.Write(n=2, path="a", inode=7, offset=0, data=b"hi"))
    >>> losses = Losses(t.Trace(root="/r", base=Tree.empty(), ops=ops), parse_profiles("ext4,xfs"))
    >>> [state.id for state in losses.states()]
    ['power@2', 'power@2-2', 'power@2-all', 'power@2-2d0']
    >>> losses.possible(losses.one("power@2-2d0"))
    ('ext4',)
    """

    def __init__(  # noqa: PLR0913 - options, each by its name
        self,
        trace: t.Trace,
        profiles: Sequence[Profile],
        *,
        bound: int = BOUND,
        seed: int = 0,
        rebuilt: Sequence[str] = REBUILT,
        sample: int | None = None,
        edges: bool = False,
        since: int = 0,
    ) -> None:
        self.trace, self.profiles = trace, tuple(profiles)
        self._losses = [
            PowerLoss(trace, profile, bound=bound, seed=seed, rebuilt=rebuilt, sample=sample, edges=edges, since=since)
            for profile in profiles
        ]

    def states(self) -> Iterator[CrashState]:
        """Each state once; under every profile those first that are the least protected."""
        seen: set[int] = set()
        streams = [(loss, loss.states()) for loss in self._losses]
        while streams:
            for loss, stream in tuple(streams):
                recipe = next((each for each in stream if each.digest not in seen), None)
                if recipe is None:
                    streams.remove((loss, stream))
                    continue
                seen.add(recipe.digest)
                # "all" is another state under each profile: it stands for the first one's.
                yield self._state(loss, recipe, recipes.id_of(loss, recipe, spelled=loss is not self._losses[0]))

    def count(self, limit: int) -> int:
        """How many states there are under all profiles, up to ``limit``; no tree is built for that."""
        seen: set[int] = set()
        for loss in self._losses:
            for recipe in loss.states():
                seen.add(recipe.digest)
                if len(seen) >= limit:
                    return limit
        return len(seen)

    def simplest(self, at: Collection[int] | None = None) -> Iterator[CrashState]:
        """From the first moment on, of each cut the states that lost the least and the most of their files.

        ``at``: only at these of :attr:`dones`.
        """
        seen: set[int] = set()
        for done in self.dones if at is None else sorted(at):
            for loss in self._losses:
                for recipe in loss.ends(done):
                    if recipe.digest not in seen:
                        seen.add(recipe.digest)
                        spelled = loss is not self._losses[0]
                        yield self._state(loss, recipe, recipes.id_of(loss, recipe, spelled=spelled))

    def at(self, done: int) -> Iterator[Named]:
        """Each state of the moment after ``done`` ops, one of :attr:`dones`, within the bound; none is made yet."""
        seen: set[int] = set()
        for loss in self._losses:
            for recipe in loss.at(done):
                if recipe.digest not in seen:
                    seen.add(recipe.digest)
                    name = recipes.id_of(loss, recipe, spelled=loss is not self._losses[0])
                    yield Named(name, done, recipe.digest, partial(self._state, loss, recipe, name))

    @property
    def counts(self) -> Counts:
        """What all profiles came to so far; ``unique`` counts a state once per profile that allows it."""
        total = Counts()
        for loss in self._losses:
            for name, number in vars(loss.counts).items():
                setattr(total, name, getattr(total, name) + number)
        return total

    @property
    def moments(self) -> int:
        """At how many moments power is lost: they are the same for each profile."""
        return len(self._losses[0].moments)

    @property
    def dones(self) -> list[int]:
        """After how many ops power is lost, in order."""
        return sorted(self._losses[0].moments)

    def one(self, state_id: str) -> CrashState:
        """The state of an id, under the first profile that knows it. Raises UsageError where none does."""
        refused: list[UsageError] = []
        for loss in self._losses:
            try:
                recipe = recipes.recipe_of(loss, state_id)
            except UsageError as error:
                refused.append(error)
                continue
            return self._state(loss, recipe, state_id)
        if len(refused) == 1 or "no op " in str(refused[0]):
            raise refused[0]
        names = ", ".join(str(loss.profile) for loss in self._losses)
        text = f"{state_id} is no state of this recording under any of {names}; under the first: {refused[0]}"
        raise UsageError(text)

    def outside(self, done: int) -> int:
        """What tells apart how much had been told outside after ``done`` ops."""
        return self._losses[0].outside(done)

    def found(self, tree: Tree, done: int) -> CrashState | None:
        """The state in which power lost after ``done`` ops leaves ``tree``; None where no profile allows it."""
        for loss in self._losses:
            moment = loss.moment(done)
            cut = next(fitting(loss.cuts, moment, tree), None)
            if cut is not None:
                recipe = recipes.recipe_at(loss, done, cut, ways(cut, tree))
                spelled = loss is not self._losses[0]
                return self._state(loss, recipe, recipes.id_of(loss, recipe, spelled=spelled))
        return None

    def least(self, state: CrashState) -> CrashState:
        """The same state, told as a loss at the earliest moment that may leave it: that names the fewest ops."""
        for done in range(state.done):
            found = self.found(state.tree, done) if self.outside(done) == self.outside(state.done) else None
            if found is not None and found.digest == state.digest:
                return found
        return state

    def possible(self, state: CrashState) -> tuple[str, ...]:
        """The profiles, of those asked for, that allow ``state`` at its moment."""
        return tuple(str(loss.profile) for loss in self._losses if self._allows(loss, state.tree, state.done))

    def may_leave(self, tree: Tree, done: int) -> bool:
        """Whether power lost after ``done`` ops may leave ``tree`` under any of the profiles."""
        return any(self._allows(loss, tree, done) for loss in self._losses)

    def marks(self, state: CrashState) -> dict[int, Mark]:
        """What ``state`` lost, by the numbers of the ops."""
        assert state.recipe is not None, "a state of a power loss has a recipe"
        loss = next(each for each in self._losses if str(each.profile) == state.profile)
        lost = recipes.lost_of(loss, state.recipe)
        marks = marks_of(state.trace, lost, state.done, journals_data=loss.profile.order == "whole")
        return dict(sorted({**implied(state.trace, state.tree, state.done, marks), **marks}.items()))

    def _allows(self, loss: PowerLoss, tree: Tree, done: int) -> bool:
        return within(loss.cuts, loss.moment(done), tree)

    def _state(self, loss: PowerLoss, recipe: Recipe, state_id: str) -> CrashState:
        return CrashState(
            id=state_id,
            fault="power",
            trace=self.trace,
            tree=loss.tree(recipe),
            done=recipe.done,
            profile=str(loss.profile),
            recipe=recipe,
        )


_known: dict[tuple[str, tuple[str, ...]], Losses] = {}


def losses_of(trace: t.Trace, profiles: tuple[Profile, ...], rebuilt: tuple[str, ...]) -> Losses:
    """The losses of ``trace``, to follow ids; those of the last trace asked for are kept."""
    if any(losses.trace is not trace for losses in _known.values()):
        _known.clear()  # a worker serves one trace, and to read it takes a while
    key = ",".join(str(profile) for profile in profiles), rebuilt
    if key not in _known:
        _known[key] = Losses(trace, profiles, rebuilt=rebuilt)
    return _known[key]
