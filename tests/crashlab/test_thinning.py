"""Some of what is alike: of each group its part, and who does not know the seed does not know which."""

from __future__ import annotations

from collections import Counter

import pytest

from crashlab.thinning import least, thinned

ITEMS = [(group, number) for group, size in (("a", 40), ("b", 5), ("c", 1)) for number in range(size)]


def group_of(item: tuple[str, int]) -> str:
    """The first part."""
    return item[0]


@pytest.mark.parametrize(("every", "left"), [(1, (40, 5, 1)), (4, (10, 2, 1)), (100, (1, 1, 1))])
def test_of_each_group_its_part_is_left_in_the_old_order(every: int, left: tuple[int, ...]) -> None:
    """Rounded up: no group is left out."""
    found = thinned(ITEMS, group_of, every=every, seed=3)
    assert tuple(Counter(map(group_of, found)).values()) == left
    assert found == [item for item in ITEMS if item in found]
    assert all(least(size, every) == kept for size, kept in zip((40, 5, 1), left, strict=True))


def test_the_seed_alone_decides_which() -> None:
    """The same again for the same one; over many every item has its turn."""
    by_seed = [thinned(ITEMS, group_of, every=4, seed=seed) for seed in range(60)]
    assert by_seed == [thinned(ITEMS, group_of, every=4, seed=seed) for seed in range(60)]
    assert set().union(*by_seed) == set(ITEMS)
