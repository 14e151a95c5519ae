"""Which errors of a program that is watched from outside a smaller budget tries: one op of each site, some of the rest.

Each error is a run of the whole program there, in a new process under strace, so that hundreds of them take minutes.
A site is what one piece of code does, as far as it can be told from outside: the same call on the same file, before
anything was told outside or after it. (Before, nothing can be lost yet; after, an old value is at stake.) Names that
differ in figures only are one. With ``Budget(errors="sites")`` every error at the first op of each site is the
stated bound, and a seeded sample of the others is tried beyond it, as long as time lasts.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from crashlab import trace as t

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from crashlab.error_points import ErrorPoint
    from crashlab.settings import Asked

MOST_SAMPLED = 25
"""So many of the others are tried beyond the bound, unless ``Budget.sample`` is smaller: each takes a second or so."""

_FIGURES = re.compile(r"[0-9]+")
Site = tuple[str, str, str, str, bool]


@dataclass(frozen=True)
class Choice:
    """``bound`` is tried whole, ``sampled`` beyond it; ``others`` counts all that are not in the bound."""

    bound: Sequence[ErrorPoint]
    sampled: Sequence[ErrorPoint] = ()
    others: int = 0

    def told(self, tried: int) -> list[str]:
        """The note for the report, where anything was left to the sample, of which ``tried`` were tried."""
        if not self.others:
            return []
        text = (
            f"error: tried were {len(self.bound)} errors, each that was asked for at the first op of each site (the "
            "same call on the same file, before anything was told outside or after it), and, beyond that bound, a "
            f"sample of {tried} of the other {self.others}; budget='full' or Budget(errors=\"ops\") tries each at "
            "each op."
        )
        return [text]


def choose(
    points: Iterable[ErrorPoint], trace: t.Trace, origins: Sequence[tuple[int, str, int]], asked: Asked
) -> Choice:
    """The errors to try. ``origins`` say by which call each op was made, where that is known."""
    every = list(points)
    if asked.budget.errors == "ops":
        return Choice(every)
    first = _firsts(trace, origins)
    bound = [point for point in every if point.n in first]
    others = [point for point in every if point.n not in first]
    size = min(len(others), asked.budget.sample, MOST_SAMPLED)
    picked = set(random.Random(asked.seed).sample(range(len(others)), size))  # noqa: S311 - a seeded sample, no secret
    return Choice(bound, [point for number, point in enumerate(others) if number in picked], len(others))


def _firsts(trace: t.Trace, origins: Sequence[tuple[int, str, int]]) -> set[int]:
    """The number of the first op of each site."""
    firsts: dict[Site, int] = {}
    told = False
    for op in trace.ops:
        if isinstance(op, (t.Ack, t.Effect)):
            told = True
        elif not isinstance(op, t.EVENTS):
            call = origins[op.n - 1][1] if op.n <= len(origins) else ""
            path, to = (_FIGURES.sub("#", getattr(op, name, "")) for name in ("path", "to"))
            firsts.setdefault((op.KIND, call, path, to, told), op.n)
    return set(firsts.values())
