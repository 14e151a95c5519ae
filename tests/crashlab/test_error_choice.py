"""What a smaller budget tries of a program that is watched from outside: each site once, and some of the rest."""

from __future__ import annotations

from crashlab import Budget
from crashlab import trace as t
from crashlab.error_choice import MOST_SAMPLED, Choice, choose
from crashlab.error_points import points
from crashlab.settings import resolve
from crashlab.tree import Tree


def save(n: int, name: str, *, pages: int = 3) -> list[t.Op]:
    """A save into a file of its own: it is made, written page by page, given its name, and acked."""
    path = f"dir/{name}.tmp"
    ops: list[t.Op] = [t.Create(n=n, path=path, inode=n)]
    ops += [t.Write(n=n + 1 + page, path=path, inode=n, offset=4096 * page, data=b"ab") for page in range(pages)]
    ops.append(t.Fsync(n=n + 1 + pages, path=f"dir/{name}.tmp", inode=n))
    ops.append(t.Rename(n=n + 2 + pages, path=f"dir/{name}.tmp", inode=n, to=f"dir/{name}.json"))
    ops.append(t.Ack(n=n + 3 + pages, value=n))
    return ops


TRACE = t.Trace(root="/r", base=Tree.empty(), ops=tuple(save(1, "ck-1") + save(8, "ck-2") + save(15, "ck-31")))


def chosen(budget: Budget | str, *, seed: int = 0, origins: tuple[tuple[int, str, int], ...] = ()) -> Choice:
    asked = resolve(faults="error", budget=budget, seed=seed)
    return choose(points(TRACE, ("EIO",)), TRACE, origins, asked)


def test_the_first_op_of_each_site_is_the_bound() -> None:
    """Before the first ack and after it; a name that differs in its number only is the same site."""
    choice = chosen("quick")
    assert {point.n for point in choice.bound} == {1, 2, 5, 6, 8, 9, 12, 13}
    assert not {point.n for point in choice.bound} & {point.n for point in choice.sampled}
    every = list(points(TRACE, ("EIO",)))
    assert choice.others == len(every) - len(choice.bound)
    assert len(choice.sampled) == min(choice.others, MOST_SAMPLED)


def test_the_same_file_written_by_another_call_is_another_site() -> None:
    """Where it is known which call made an op."""
    names = {3: "pwrite64"}
    origins = tuple((7, names.get(op.n, "write"), op.n) for op in TRACE.ops)
    assert {point.n for point in chosen("quick", origins=origins).bound} == {1, 2, 3, 5, 6, 8, 9, 12, 13}


def test_a_full_budget_tries_each_error_at_each_op() -> None:
    """Nothing is left to a sample, and nothing is said."""
    for budget in ("full", Budget(errors="ops")):
        choice = chosen(budget)
        assert list(choice.bound) == list(points(TRACE, ("EIO",)))
        assert (list(choice.sampled), choice.told(0)) == ([], [])


def test_the_sample_is_seeded_and_told_apart() -> None:
    """The same seed picks the same; the note says how many of how many, and what tries all."""
    numbers = [[(point.n, point.mode) for point in chosen(Budget(sample=5), seed=seed).sampled] for seed in (1, 1, 2)]
    assert numbers[0] == numbers[1] != numbers[2]
    assert len(numbers[0]) == 5
    choice = chosen(Budget(sample=5))
    [note] = choice.told(4)
    assert f"a sample of 4 of the other {choice.others}" in note
    assert "budget='full'" in note
    assert list(chosen("brief").sampled) == []
