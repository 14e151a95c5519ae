"""Barriers held against the real recovery: which are missing, and which change nothing.

:mod:`crashlab.advice` knows the verdicts of the check; for a state that only other barriers leave, the
recovery is asked here, on the tree of that state. The weakest profile counts as well, whatever was asked
for, so that what is advised on one file system holds on the next.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from crashlab import trace as t
from crashlab.advice import advise, redundant
from crashlab.barrier_search import Limits
from crashlab.crash.places import place_path
from crashlab.crash.profiles import POSIX
from crashlab.crash.states import CrashState

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crashlab.barriers import Advice
    from crashlab.crash.power import PowerLoss, Recipe
    from crashlab.demands import Reference
    from crashlab.rounds import Round
    from crashlab.settings import Asked

ENUMERATIONS = 60
"""So many times states are enumerated in one search."""

SHARE_OF_TIME = 4
"""A search takes at most this part of the time that each fault may take."""


def mending(reference: Reference, asked: Asked, rounds: Sequence[Round]) -> Advice | None:
    """Which barriers mend what power losses broke; None where they broke nothing."""
    tried = next((each for each in rounds if each.fault == "power" and any(each.failing.values())), None)
    if tried is None:
        return None
    profiles = {str(profile): profile for profile in (*asked.profiles, POSIX)}
    judge = partial(_fails, tried, reference)
    return advise(reference.trace, profiles.values(), tried.failing.get, judge=judge, limits=_limits(reference, asked))


def _limits(reference: Reference, asked: Asked) -> Limits:
    """States as the check enumerated them; for the search a part of its time."""
    return Limits(
        bound=asked.bound,
        seed=asked.seed,
        rebuilt=reference.rebuilt,
        sample=asked.sample,
        edges=asked.edges,
        anew=asked.budget.anew,
        limit=ENUMERATIONS,
        time_s=asked.budget.time_s / SHARE_OF_TIME,
    )


def superfluous(reference: Reference, asked: Asked, rounds: Sequence[Round]) -> list[str]:
    """The subject's own barriers that can go all together on the weakest profile, in one line each."""
    tried = next((each for each in rounds if each.fault == "power"), None)
    if tried is None:
        return ["redundant barriers were not looked for: that needs the fault power."]
    if any(tried.failing.values()):
        return ["redundant barriers were not looked for: mend what fails first, it may need them."]
    gone = redundant(reference.trace, [POSIX], partial(_fails, tried, reference), limits=_limits(reference, asked))
    barriers = [op for op in reference.trace.ops if isinstance(op, t.BARRIERS)]
    if not gone:
        return [f"redundant: none of the {len(barriers)} barriers can go."]
    lines: dict[str, list[int]] = {}
    for n in gone:
        op = reference.trace.op(n)
        where = op.at or f"{op.KIND} {place_path(getattr(op, 'path', ''))}"
        lines.setdefault(where, []).append(n)
    told = [
        f"redundant: {reference.trace.op(ns[0]).KIND} at {where} (op {', '.join(map(str, ns[:3]))}"
        f"{', …' if len(ns) > 3 else ''}): without it no state fails, on posix."  # noqa: PLR2004 - enough to find it
        for where, ns in lines.items()
    ]
    return [*told, f"redundant: {len(gone)} of {len(barriers)} barriers, all together."]


def _fails(tried: Round, reference: Reference, trace: t.Trace, loss: PowerLoss, recipe: Recipe) -> bool:
    """Whether a state of ``trace``, which has other barriers than the recorded one, is a violation."""
    known = tried.failing.get(recipe.digest)
    if known is not None:
        return known
    told = sum(isinstance(op, t.BARRIERS) for op in trace.ops[: recipe.done])
    steps = [op.n for op in reference.trace.ops if not isinstance(op, t.BARRIERS)]
    done = steps[recipe.done - told - 1] if recipe.done > told else 0
    name = f"power@{done} with other barriers, {recipe.digest:x}"
    return tried.fails(CrashState(id=name, fault="power", trace=reference.trace, tree=loss.tree(recipe), done=done))
