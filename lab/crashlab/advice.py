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
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from crashlab import trace as t
from crashlab.barriers import (
    Advice,
    Barrier,
    candidates,
    joined,
    numbered,
    parts_of,
    position,
    role_of,
    shown,
    with_barriers,
)
from crashlab.crash.contains import within
from crashlab.crash.power import BOUND, PowerLoss, Recipe
from crashlab.crash.shapes import REBUILT
from crashlab.crash.states import Prefixes
from crashlab.tree import Directory, File, Tree

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from crashlab.crash.profiles import Profile

    Judge = Callable[[t.Trace, PowerLoss, Recipe], bool]

LIMIT_ENUMERATIONS = 200
LARGEST_SET = 3
WHOLE_SEARCH = 12
"""Of more candidates only one minimal set is sought, first among files that failing states show otherwise."""
JUDGED_ANEW = 50
"""So many states without a verdict, evenly spread, are judged of what a set leaves, where the caller can judge."""
LOOKED_AT = 24
"""So many failing states, evenly spread, are looked at where a look at each would take too long."""


# --- search ---------------------------------------------------------------------------------------


class _SpentError(Exception):
    """The limit of enumerations is reached."""


@dataclass(frozen=True)
class _Options:
    """What :class:`~crashlab.crash.power.PowerLoss` is made with."""

    bound: int
    seed: int
    rebuilt: tuple[str, ...]
    anew: int = JUDGED_ANEW

    def loss(self, trace: t.Trace, profile: Profile) -> PowerLoss:
        return PowerLoss(trace, profile, bound=self.bound, seed=self.seed, rebuilt=self.rebuilt)


@dataclass
class _Seen:
    """What enumerating met: failing states, the last moment of one, states not judged; whether some were left out."""

    failing: dict[int, tuple[PowerLoss, Recipe]]
    unjudged: set[int]
    last: int = 0
    sampled: bool = False

    def some(self) -> list[tuple[PowerLoss, Recipe]]:
        """Some failing states, evenly spread."""
        found = list(self.failing.values())
        return found[:: max(1, -(-len(found) // LOOKED_AT))]


class _Search:
    """Asks for sets of barriers whether they mend all; remembers the answers, and what follows from them."""

    def __init__(
        self,
        trace: t.Trace,
        profiles: Collection[Profile],
        bad: Callable[[int], bool | None],
        options: _Options,
        judge: Judge | None,
    ) -> None:
        self.trace, self._bad, self._options, self._judge = trace, bad, options, judge
        self._anew: dict[int, bool] = {}
        self._passed = 0
        self.profiles = list(profiles)
        self.tried = 0
        self.limit = 0
        self.unjudged: dict[frozenset[Barrier], int] = {}
        self._mending: list[frozenset[Barrier]] = []
        self._failing: list[frozenset[Barrier]] = [frozenset()]
        self.base = self.look(trace)
        self.sampled = self.base.sampled
        self._known = [(loss.outside(recipe.done), loss.tree(recipe)) for loss, recipe in self.base.some()]

    def look(self, trace: t.Trace, *, stop: bool = False, every: int = 0) -> _Seen:
        """Enumerate under every profile; with ``stop`` no further than to the first failing state, nor the limit.

        One in ``every`` states without a verdict is judged, if that is not 0.
        """
        seen = _Seen({}, set())
        for profile in tuple(self.profiles):
            if stop and self.tried >= self.limit:
                raise _SpentError
            self.tried += 1
            loss = self._options.loss(trace, profile)
            for recipe in loss.states():
                verdict = self._verdict(loss, recipe, every)
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

    def mends(self, barriers: Collection[Barrier]) -> bool:
        """Whether no failing state is left. Raises _SpentError where that would take one enumeration too many."""
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
        seen = self.look(with_barriers(self.trace, barriers), stop=True, every=-(-left // self._options.anew))
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


def advise(  # noqa: PLR0913 - the bound, seed and globs are those that the verdicts came from
    trace: t.Trace,
    profiles: Collection[Profile],
    bad: Callable[[int], bool | None],
    *,
    bound: int = BOUND,
    seed: int = 0,
    rebuilt: Sequence[str] = REBUILT,
    limit: int = LIMIT_ENUMERATIONS,
    judge: Judge | None = None,
    anew: int = JUDGED_ANEW,
) -> Advice:
    """Find the barriers that mend every failing state of ``trace`` under all ``profiles``.

    ``bad`` tells of a :attr:`~crashlab.crash.power.Recipe.digest` whether that state was found to be a violation;
    None where it was never judged, which counts as fine and is said. ``bound``, ``seed`` and ``rebuilt`` are those
    of the check. After about ``limit`` enumerations the best that is known is told. ``judge``, as in
    :func:`redundant`, is asked for some of the states without a verdict that barriers leave: where the check judged
    a sample, other states than its own are met, and a set may seem to mend because nobody looked at what it leaves.
    ``anew`` is for how many of them it is asked per set.

    >>> from crashlab.crash.profiles import EXT4
    >>> base = Tree.empty().apply(t.MakeDirectory(n=1, path="dir", inode=1))
    >>> base = base.apply(t.Create(n=1, path="dir/a", inode=7))
    >>> write = t.Write(n=1, path="dir/a", inode=7, offset=0, data=b"hi")
    >>> loss = PowerLoss(trace := t.Trace(root="/r", base=base, ops=(write, t.Ack(n=2))), EXT4)
    >>> acked = {state.digest: loss.tree(state).node("dir/a") for state in loss.states() if state.done == 2}
    >>> lost = {digest for digest, file in acked.items() if file.content.read() != b"hi"}
    >>> advise(trace, [EXT4], lost.__contains__).lines()
    ('fsync a between ops 1 and 2.', 'With it, all 2 failing states are consistent.')
    """
    search = _Search(trace, profiles, bad, _Options(bound, seed, tuple(rebuilt), anew), judge)
    advice = Advice(sets=(), failing=len(search.base.failing), tried=search.tried, mended=True, sampled=search.sampled)
    if not advice.failing:
        return replace(advice, unjudged=len(search.base.unjudged))
    pool = candidates(trace, search.base.last)
    search.limit = max(limit, 2 * len(profiles))
    return _mended(search, pool, advice) if search.mends(pool) else _helpless(search, pool, advice)


def _mended(search: _Search, pool: Sequence[Barrier], advice: Advice) -> Advice:
    complete, sets = True, list[frozenset[Barrier]]()
    try:
        sets = _smallest(search, pool)
        sets = [_refined(search, each) for each in sets]
    except _SpentError:
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


def _helpless(search: _Search, pool: Sequence[Barrier], advice: Advice) -> Advice:
    left = search.look(with_barriers(search.trace, pool))
    return replace(
        advice,
        tried=search.tried,
        mended=False,
        pattern=_pattern(search.trace, _involved(left.some()) or _involved(search.base.some())),
        remaining=max(1, len(left.failing)),  # one that was not met may have been asked for
        unjudged=len(left.unjudged),
        sampled=search.sampled or left.sampled,
    )


def _preferred(barriers: Iterable[Barrier]) -> tuple[object, ...]:
    """Few before many, late before early."""
    ordered = sorted(barriers, key=position)
    return len(ordered), sorted(-barrier.after[0] for barrier in ordered), [position(barrier) for barrier in ordered]


def _smallest(search: _Search, pool: Sequence[Barrier]) -> list[frozenset[Barrier]]:
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


def _one_minimal(search: _Search, pool: Sequence[Barrier]) -> frozenset[Barrier]:
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


def _relevant(search: _Search, pool: Sequence[Barrier]) -> Sequence[Barrier]:
    """The candidates for files and names that failing states show otherwise; all, where these do not mend."""
    involved = _involved(search.base.some())
    ops = search.trace.ops
    found = [
        each
        for each in pool
        if any(isinstance(op, t.FileOp) and op.inode in involved for op in (ops[n - 1] for n in each.after))
    ]
    return found if search.mends(found) else pool


def _is_later(one: frozenset[Barrier], other: frozenset[Barrier]) -> bool:
    """Whether ``one`` syncs the same as ``other``, nothing earlier and something later."""
    ours, theirs = (sorted((each.directory, each.inodes[0], each.after) for each in found) for found in (one, other))
    same = [each[:2] for each in ours] == [each[:2] for each in theirs]
    return same and ours != theirs and all(mine[2] >= its[2] for mine, its in zip(ours, theirs, strict=True))


def _refined(search: _Search, barriers: frozenset[Barrier]) -> frozenset[Barrier]:
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


# --- no barrier helps -----------------------------------------------------------------------------


def _involved(states: Iterable[tuple[PowerLoss, Recipe]]) -> set[int]:
    """The files and names that these states show otherwise than the running system did."""
    found: set[int] = set()
    trees: dict[int, Prefixes] = {}
    for loss, recipe in states:
        prefixes = trees.setdefault(id(loss), Prefixes(loss.trace))
        found |= set(_differing(prefixes.tree(loss.moments[recipe.done].started), loss.tree(recipe)))
    return found


def _differing(running: Tree, crashed: Tree) -> Iterator[int]:
    for inode, node in crashed.nodes.items():
        other = running.nodes.get(inode)
        if isinstance(node, Directory) and isinstance(other, Directory):
            for name in node.entries.keys() | other.entries.keys():
                ends = {node.entries.get(name), other.entries.get(name)}
                yield from (end for end in ends if end is not None and len(ends) > 1)
        elif isinstance(node, File) and isinstance(other, File) and _seen_in(node) != _seen_in(other):
            yield inode


def _seen_in(file: File) -> tuple[object, ...]:
    return file.content, file.mode, file.attributes


def _pattern(trace: t.Trace, involved: Collection[int]) -> str:
    """The protocol that would hold, for the file that was changed in place or appended to."""
    writes = [op for op in trace.ops if isinstance(op, (t.Write, t.Truncate, t.Allocate))]
    mine = [op for op in writes if op.inode in involved] or writes
    if not mine:
        return "Make one change of a name the moment at which the new state counts, and fsync the directory after it."
    path, inode = mine[-1].path, mine[-1].inode
    changes = [op for op in mine if op.inode == inode]
    node, size = trace.base.nodes.get(inode), 0
    size = node.content.size if isinstance(node, File) else 0
    for op in changes:
        if not isinstance(op, t.Write) or op.offset != size:
            break
        size += len(op.data)
    else:
        if len(changes) > 1 or inode in trace.base.nodes:
            return (
                f"Give each record of {shown(path)} its length and a checksum, fsync after each append, "
                "and let the reader ignore a tail that does not match."
            )
    return (
        f"Write a temporary file in the same directory, fsync it, rename it over {shown(path)}, fsync the directory: "
        "a reader then meets the old file or the new one, never a mix."
    )


# --- barriers that do nothing ---------------------------------------------------------------------


def redundant(  # noqa: PLR0913 - as advise
    trace: t.Trace,
    profiles: Collection[Profile],
    judge: Judge,
    *,
    bound: int = BOUND,
    seed: int = 0,
    rebuilt: Sequence[str] = REBUILT,
    limit: int = LIMIT_ENUMERATIONS,
) -> tuple[int, ...]:
    """Numbers of the barriers that can go, all together, without a state that fails and did not before.

    They are tried one after another from the first on, and each that can go stays away; in a loop the same step
    of every turn at once. Fewer barriers leave more states: ``judge`` says whether one of them is a violation, and
    is asked once per digest. A synchronous write is no barrier of its own here.
    """
    fails = _Fails(trace, profiles, judge, _Options(bound, seed, tuple(rebuilt)))
    before, gone, groups = frozenset(fails.without(())), set[int](), dict[object, set[int]]()
    for op in trace.ops:
        if isinstance(op, t.BARRIERS):
            groups.setdefault(role_of(trace, op), set()).add(op.n)
    for group in groups.values():
        if fails.tried >= limit:
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
    options: _Options
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
