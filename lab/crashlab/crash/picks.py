"""One crash state of many, by a number: the order in which a path picks where it crashes.

The latest moment comes first, since a program that has just promised something has the most to lose. At one
moment of a power loss the states that lost the fewest come first; those that lost nothing come after all
others, for they are what a kill leaves too. So number 0 is a loss wherever there can be one. Of states
that cannot be told apart only the first counts.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from crashlab.crash.losses import Losses, Named
    from crashlab.crash.states import CrashState

State = TypeVar("State")
_EVERYTHING = 1_000_000
_RANGE = re.compile(r"(\d+)(?:\+\d+)?\.\.(\d*)")


def latest_first(kills: Iterable[CrashState]) -> list[CrashState]:
    """The states of kills, given in order of the ops, each once, the latest first."""
    found: dict[str, CrashState] = {}
    for state in reversed(list(kills)):
        found.setdefault(state.digest, state)
    return list(found.values())


def fewest_first(losses: Losses) -> Iterator[Named]:
    """The states of power losses, each once."""
    whole: list[Named] = []
    seen: set[int] = set()
    for done in reversed(losses.dones):
        for state in sorted(losses.at(done), key=_simplest):
            if lost_count(state) == 0:
                whole.append(state)
            elif state.digest not in seen:
                seen.add(state.digest)
                yield state
    for state in whole:
        if state.digest not in seen:
            seen.add(state.digest)
            yield state


def picked(states: Iterable[State], pick: int) -> State:
    """State number ``pick``, modulo how many there are. No more of them are looked at than that takes."""
    met: list[State] = []
    for number, state in enumerate(states):
        if number == pick:
            return state
        met.append(state)
    return met[pick % len(met)]


def _simplest(state: Named) -> tuple[int, int]:
    """Few losses, and of these the ones of whole ops."""
    return lost_count(state), sum(character.isalpha() for character in state.id.partition("-")[2])


def lost_count(state: Named) -> int:
    """How many ops, or parts of ops, a power loss took, as its id names them.

    >>> from crashlab.crash.losses import Named
    >>> [lost_count(Named(f"power@9{lost}", 9, 0, lambda: None)) for lost in ("", "-3", "-3..5,7d0", "-8..")]
    [0, 1, 4, 2]
    """
    _, _, lost = state.id.partition("-")
    if lost == "all":
        return _EVERYTHING
    count = 0
    for item in lost.split(",") if lost else ():
        match = _RANGE.match(item)
        count += (int(match[2] or state.done) - int(match[1]) + 1) if match else 1
    return count
