"""A part of what is alike: of each group some, chosen by a seed, and of each group at least one.

For a second look with other values: who has gone through all damage, errors and races once asks the second time
whether the subject does the same whatever it is given. What is left out then is left out of every group alike, and
whoever does not know the seed does not know what.
"""

from __future__ import annotations

import random
from collections import defaultdict
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable

THINNED = ("damage", "error", "race")
"""The faults of which a part is tried; kills and power losses are cheap, and always whole."""

Item = TypeVar("Item")


def thinned(items: Iterable[Item], alike: Callable[[Item], Hashable], *, every: int, seed: int) -> list[Item]:
    """One in ``every`` of those for which ``alike`` gives the same, rounded up, in their order; all of them for 1.

    >>> thinned(["a1", "a2", "a3", "b1"], lambda name: name[0], every=3, seed=7)
    ['a2', 'b1']
    """
    every_one = list(items)
    if every <= 1:
        return every_one
    groups: defaultdict[Hashable, list[int]] = defaultdict(list)
    for number, item in enumerate(every_one):
        groups[alike(item)].append(number)
    chance = random.Random(seed)  # noqa: S311 - a seeded sample; its seed is the secret, where it is one
    kept = {number for group in groups.values() for number in chance.sample(group, least(len(group), every))}
    return [item for number, item in enumerate(every_one) if number in kept]


def least(count: int, every: int) -> int:
    """How many of ``count`` that are alike are tried.

    >>> least(100, 4), least(5, 4), least(1, 4)
    (25, 2, 1)
    """
    return -(-count // every)
