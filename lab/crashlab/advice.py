"""Which fsync would have saved it: barriers are put into a trace, and the states that are left looked up.

A barrier only ever takes states away, and a digest does not know of ops; so the verdicts of one check
answer for every set of barriers, and no recovery runs again. Tried are all candidates together, then those
that no set can do without, then sets of one, two and three: all smallest sets are told, of those that
differ in the place alone the latest. Where more are needed, or candidates are too many, what can go is
taken from the whole. If not even all of them help, the protocol itself is at fault.

Not tried: fdatasync, a barrier in some turns of a loop only, an op moved to another place.
"""

from __future__ import annotations

import itertools
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from crashlab import trace as t
from crashlab.barrier_search import DEFAULT_LIMITS, LIMIT_ENUMERATIONS, Limits, Search, Seen, SpentError
from crashlab.barriers import (
    Advice,
    Barrier,
    candidates,
    joined,
    numbered,
    parts_of,
    position,
    role_of,
    with_barriers,
)
from crashlab.protocols import involved, pattern_for

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from crashlab.barrier_search import Judge
    from crashlab.crash.profiles import Profile

LARGEST_SET = 3
WHOLE_SEARCH = 12
"""Of more candidates only one minimal set is sought, first among files that failing states show otherwise."""


def advise(
    trace: t.Trace,
    profiles: Collection[Profile],
    bad: Callable[[int], bool | None],
    *,
    judge: Judge | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> Advice:
    """Find the barriers that mend every failing state of ``trace`` under all ``profiles``.

    Where none do, those that mend what barriers can. ``bad`` tells of a recipe's digest whether that state was a
    violation; None where it was never judged, which counts as fine and is said. ``judge``, as in :func:`redundant`,
    is asked for some of those: else a set may seem to mend because nobody looked at what it leaves.

    >>> from crashlab.crash.profiles import EXT4
    >>> from crashlab.tree import Tree
    >>> base = Tree.empty().apply(t.Create(n=1, path="a", inode=7))
    >>> write = t.Write(n=1, path="a", inode=7, offset=0, data=b"hi")
    >>> loss = DEFAULT_LIMITS.loss(trace := t.Trace(root="/r", base=base, ops=(write, t.Ack(n=2))), EXT4)
    >>> acked = {state.digest: loss.tree(state).node("a") for state in loss.states() if state.done == 2}
    >>> lost = {digest for digest, file in acked.items() if file.content.read() != b"hi"}
    >>> advise(trace, [EXT4], lost.__contains__).lines()
    ('fsync ~a between ops 1 and 2.', 'With it, all 2 failing states are consistent.')
    """
    search = Search(trace, profiles, bad, limits, judge)
    advice = Advice(sets=(), failing=len(search.base.failing), tried=search.tried, mended=True, sampled=search.sampled)
    if not advice.failing:
        return replace(advice, unjudged=len(search.base.unjudged))
    pool, search.limit = candidates(trace, search.base.last), max(limits.limit, 2 * len(profiles))
    try:
        if search.mends(pool):
            return _mended(search, pool, advice)
    except SpentError:
        return replace(advice, mended=False, complete=False, tried=search.tried)
    hopeless = search.look(with_barriers(trace, pool))
    advice = _helpless(search, hopeless, advice)
    if not hopeless.failing or search.is_spent:
        return advice
    others = Search(trace, profiles, lambda digest: digest not in hopeless.failing and bad(digest), limits, judge)
    return replace(advice, partly=_partly(others, pool))


def _partly(search: Search, pool: Sequence[Barrier]) -> tuple[Barrier, ...]:
    """The barriers that mend what barriers can, where that is not all."""
    search.limit = LIMIT_ENUMERATIONS
    try:
        if not search.base.failing or not search.mends(pool):
            return ()
        best = min((_refined(search, each) for each in _smallest(search, pool)), key=search.order)
    except SpentError:
        return ()
    return tuple(sorted(best, key=position))


def _mended(search: Search, pool: Sequence[Barrier], advice: Advice) -> Advice:
    complete, sets = True, list[frozenset[Barrier]]()
    try:
        sets = _smallest(search, pool)
        sets = [_refined(search, each) for each in sets]
    except SpentError:
        complete, sets = bool(sets), sets or [search.best()]
    told = tuple(tuple(sorted(each, key=position)) for each in sorted(dict.fromkeys(sets), key=search.order))
    return replace(
        advice,
        sets=told,
        tried=search.tried,
        unjudged=search.unjudged.get(frozenset(told[0]), 0),
        sampled=search.sampled,
        complete=complete,
    )


def _helpless(search: Search, left: Seen, advice: Advice) -> Advice:
    """What is said where even all barriers together leave failing states."""
    return replace(
        advice,
        tried=search.tried,
        mended=False,
        pattern=pattern_for(search.trace, involved(left.some()) or involved(search.base.some())),
        remaining=max(1, len(left.failing)),  # one that was not met may have been asked for
        unjudged=len(left.unjudged),
        sampled=search.sampled or left.sampled,
    )


def _smallest(search: Search, pool: Sequence[Barrier]) -> list[frozenset[Barrier]]:
    """All smallest sets from the pool, without those that another one does the same for later; or one minimal set."""
    if len(pool) > WHOLE_SEARCH:
        return [_one_minimal(search, _relevant(search, pool))]
    needed = [each for each in pool if not search.mends({*pool} - {each})]
    rest = [each for each in pool if each not in needed]
    reserve = 2 * len(rest) * len(search.profiles)
    for size in range(LARGEST_SET - len(needed) + 1):
        found = []
        for more in itertools.combinations(rest, size):
            if search.tried + reserve > search.limit:
                return [_one_minimal(search, pool)]
            if search.holds(frozenset({*needed, *more})):
                found.append(frozenset({*needed, *more}))
        if found:
            return [each for each in found if not any(_is_later(other, each) for other in found)]
    return [_one_minimal(search, pool)]


def _one_minimal(search: Search, pool: Sequence[Barrier]) -> frozenset[Barrier]:
    """What is left of the pool when nothing more can go: halves are tried first, and the earliest go first."""
    kept, size = list(pool), max(1, len(pool) // 2)
    while True:
        start = 0
        while start < len(kept):
            rest = kept[:start] + kept[start + size :]
            if search.holds(frozenset(rest)):
                kept = rest
            else:
                start += size
        if size == 1:
            return frozenset(kept)
        size //= 2


def _relevant(search: Search, pool: Sequence[Barrier]) -> Sequence[Barrier]:
    """The candidates for files and names that failing states show otherwise; all, where these do not mend."""
    ops = search.trace.ops
    concerned = involved(search.base.some())
    found = [
        each
        for each in pool
        if any(isinstance(op, t.FileOp) and op.inode in concerned for op in (ops[n - 1] for n in each.after))
    ]
    return found if search.mends(found) else pool


def _is_later(one: frozenset[Barrier], other: frozenset[Barrier]) -> bool:
    """Whether ``one`` syncs the same as ``other``, nothing earlier and something later."""
    ours, theirs = (sorted((each.directory, each.inodes[0], each.after) for each in found) for found in (one, other))
    same = [each[:2] for each in ours] == [each[:2] for each in theirs]
    return same and ours != theirs and all(mine[2] >= its[2] for mine, its in zip(ours, theirs, strict=True))


def _refined(search: Search, barriers: frozenset[Barrier]) -> frozenset[Barrier]:
    """The set without those places of its barriers, by line of source and following op, that are not needed."""
    for barrier in sorted(barriers, key=position):
        parts = parts_of(search.trace, barrier)
        if not 1 < len(parts) <= LARGEST_SET:
            continue
        for part in tuple(parts):
            fewer = [each for each in parts if each is not part]
            if fewer and search.holds((barriers - {barrier}) | {joined(fewer)}):
                parts = fewer
        barriers = (barriers - {barrier}) | {joined(parts)}
    return barriers


# --- barriers that do nothing ---------------------------------------------------------------------


def redundant(
    trace: t.Trace, profiles: Collection[Profile], judge: Judge, *, limits: Limits = DEFAULT_LIMITS
) -> tuple[int, ...]:
    """Numbers of the barriers that can go, all together, without a state that fails and did not before.

    They are tried one after another from the first on, and each that can go stays away; in a loop the same step
    of every turn at once. Fewer barriers leave more states: ``judge`` says whether one of them is a violation, and
    is asked once per digest. A synchronous write is no barrier of its own here.
    """
    fails = _Fails(trace, profiles, judge, limits)
    until = time.monotonic() + limits.time_s
    before, gone, groups = frozenset(fails.without(())), set[int](), dict[object, set[int]]()
    for op in trace.ops:
        if isinstance(op, t.BARRIERS):
            groups.setdefault(role_of(trace, op), set()).add(op.n)
    for group in groups.values():
        if fails.tried >= limits.limit or time.monotonic() > until:
            break
        if all(digest in before for digest in fails.without(gone | group)):
            gone |= group
    return tuple(sorted(gone))


@dataclass
class _Fails:
    """The failing states of a trace without some of its ops, each digest judged once."""

    trace: t.Trace
    profiles: Collection[Profile]
    judge: Judge
    options: Limits
    tried: int = 0
    verdicts: dict[int, bool] = field(default_factory=dict)

    def without(self, gone: Collection[int]) -> Iterator[int]:
        """Digests that fail once the ops ``gone`` are left out."""
        shorter = numbered(self.trace, (op for op in self.trace.ops if op.n not in gone))
        for profile in self.profiles:
            self.tried += 1
            loss = self.options.loss(shorter, profile)
            for recipe in loss.states():
                if recipe.digest not in self.verdicts:
                    self.verdicts[recipe.digest] = self.judge(shorter, loss, recipe)
                if self.verdicts[recipe.digest]:
                    yield recipe.digest
