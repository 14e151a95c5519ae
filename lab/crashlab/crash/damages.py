"""Which damage is tried, as a source of states: every file, at rest, kind by kind.

Damage happens at rest, so the moments are those at which nothing was under way: the end of the
recorded run, and one more. For a program that is the last ack or save point before its last effect,
so that work remains which a wrong belief about the past would do twice; for a ``Store`` or ``Log`` the
ack at which the files were largest, where that is another one: the last value may be small.

Per file of ``dir`` and ``home``, but for those that the program rebuilds, and for empty temporary
places: all bits where there are no more than ``bound``, else the first and the last bytes, one bit per
record and per sector, and a seeded sample, which counts apart; the truncations, zero ranges, garbage,
foreign contents and the rest as :func:`Damages.listed` names them, whole. A record starts where a line
or a recorded write does. The kinds that leave a sound directory of another time are tried only where
something else can tell that they are old (a program with effects, or several files), unless named.
"""

from __future__ import annotations

import os
import random
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from crashlab import trace as t
from crashlab.content import BLOCK_BYTES
from crashlab.crash import formats
from crashlab.crash.damage import KINDS, OF_AGE, Damage, apply, damaged, encoded, file_at
from crashlab.crash.shapes import is_rebuilt
from crashlab.crash.states import prefixes_of
from crashlab.subject import PROGRAMS, REBUILT
from crashlab.thinning import thinned
from crashlab.tree import File

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from crashlab.crash.states import CrashState
    from crashlab.tree import Tree

SECTOR_BYTES = 512
EDGE_BYTES = 64
"""So many bytes at the beginning and at the end of a large file have their bits flipped."""

PLACES_AT_MOST = 64
"""Of more records, sectors or blocks than this, the first and the last half of so many."""

NEIGHBOURS_FROM = 9
"""With so many files each is exchanged with the next one only, else with every other."""

EXTRA_BYTES = (1, 16, 4096)
ACTS = (t.Ack, t.SavePoint, t.Effect)


class Extent(NamedTuple):
    """How much there is: files times moments, states tried, of these picked by chance, and bits left out."""

    points: int = 0
    reached: int = 0
    sampled: int = 0
    skipped: int = 0


class Damages:
    """The damage of one trace. ``bound`` is up to how many bits a file is gone through whole."""

    def __init__(  # noqa: PLR0913 - what was asked for, each once, all by keyword
        self,
        trace: t.Trace,
        *,
        kind: str,
        variants: Sequence[str] = (),
        bound: int = 4096,
        sample: int = 200,
        seed: int = 0,
        edges: bool = False,
        every: int = 1,
        rebuilt: Sequence[str] = REBUILT,
    ) -> None:
        self._trace, self._kind, self._variants = trace, kind, tuple(variants)
        self._bound, self._sample, self._seed, self._edges = bound, sample, seed, edges
        self._every, self._rebuilt = every, tuple(rebuilt)
        self.moments = moments_of(trace, kind)

    def states(self) -> Iterator[CrashState]:
        """Every state, equal ones included, but for damage that changes nothing."""
        return (state for state, _ in self._states())

    def count(self, limit: int) -> int:
        """How many states have a digest of their own, up to ``limit``."""
        return min(self._tried[0], limit)

    def one(self, state_id: str) -> CrashState:
        """The state of an id. Raises UsageError where no damage leaves it."""
        return damaged(self._trace, state_id)

    def extent(self) -> Extent:
        """The figures for the report."""
        points = skipped = 0
        for at in self.moments:
            for path in self.files(at):
                points += 1
                skipped += self._bits_left_out(at, path)
        skipped += sum(1 for _ in self._every_one()) - len(self._chosen)
        _, reached, sampled = self._tried
        return Extent(points, reached, sampled, skipped)

    @cached_property
    def _tried(self) -> tuple[int, int, int]:
        """How many distinct states, how many states, and how many of these by chance."""
        digests, reached, by_chance = set[str](), 0, 0
        for state, sampled in self._states():
            digests.add(state.digest)
            reached, by_chance = reached + 1, by_chance + sampled
        return len(digests), reached, by_chance

    def files(self, at: int) -> list[str]:
        """The files that are damaged after ``at`` ops."""
        tree = prefixes_of(self._trace).tree(at)
        found = [path for place in ("dir", "home") for path, _, node in tree.walk(place) if isinstance(node, File)]
        return [path for path in found if not is_rebuilt(path, self._rebuilt)]

    def listed(self, at: int, path: str, kind: str) -> Iterator[str]:
        """The arguments of one kind of damage to one file, those of the sample of bits left out."""
        file = file_at(prefixes_of(self._trace).tree(at), path)
        assert file is not None, "one of files()"
        data, size = file.content.read(), file.content.size
        records = self._records(at, path, data)
        match kind:
            case "bit":
                yield from map(str, self._bits(size, records))
            case "truncate":
                yield from map(str, truncations(size, records))
            case "zeros" | "garbage":
                spans = spans_of(size, records)
                yield from (f"{start}-{end}" for start, end in (spans if kind == "zeros" else spans[:GARBAGE_SPANS]))
            case "stale" | "stale-block" | "swap" | "misdirect" | "restore":
                yield from self._listed_in_tree(at, path, kind, len(file.content.blocks))
            case _:
                yield from _LISTED[kind](data)

    # --- the kinds -----------------------------------------------------------------------------

    def _states(self) -> Iterator[tuple[CrashState, bool]]:
        for damage, sampled in self._chosen:
            state = apply(self._trace, damage)
            if state is not None:
                yield state, sampled

    @cached_property
    def _chosen(self) -> list[tuple[Damage, bool]]:
        """What is tried; whether it was picked by chance."""
        return thinned(self._every_one(), _alike, every=self._every, seed=self._seed)

    def _every_one(self) -> Iterator[tuple[Damage, bool]]:
        for at in reversed(self.moments):
            for path in self.files(at):
                for kind in self._kinds(at):
                    for argument in self.listed(at, path, kind):
                        yield Damage(path, kind, argument, at), False
        for at in reversed(self.moments):
            for path in self.files(at):
                for number in self._sampled_bits(at, path):
                    yield Damage(path, "bit", str(number), at), True

    def _kinds(self, at: int) -> list[str]:
        if self._variants:
            return [kind for kind in KINDS if kind in self._variants]
        evident = self._kind in PROGRAMS or len(self.files(at)) > 1
        return [kind for kind in KINDS if evident or kind not in OF_AGE]

    def _listed_in_tree(self, at: int, path: str, kind: str, blocks: int) -> Iterator[str]:
        match kind:
            case "stale":
                yield from map(str, self._versions(at, path))
            case "stale-block":
                for op in self._versions(at, path):
                    changed = self._changed_blocks(at, path, op)
                    yield from (f"{changed[place]}:{op}" for place in self._some_blocks(len(changed)))
            case "swap":
                yield from (encoded(other) for other in self._partners(at, path) if other > path)
            case "misdirect":
                for other in self._partners(at, path):
                    yield from (f"{block}:{encoded(other)}" for block in self._some_blocks(blocks))
            case "restore":  # where the one file was the same then, all is of one moment
                now = _digest(prefixes_of(self._trace).tree(at), path)
                older = self._moments_before(at)
                yield from (str(op) for op in older if _digest(prefixes_of(self._trace).tree(op), path) != now)

    def _partners(self, at: int, path: str) -> list[str]:
        files = self.files(at)
        if len(files) < NEIGHBOURS_FROM:
            return [other for other in files if other != path]
        return [files[(files.index(path) + 1) % len(files)]]

    def _some_blocks(self, count: int) -> Sequence[int]:
        if self._edges:
            return tuple(sorted({0, count // 2, count - 1} & set(range(count))))
        return _ends(range(count))

    def _changed_blocks(self, at: int, path: str, since: int) -> Sequence[int]:
        """The blocks of a file that it had ``since`` already, and that have been written since."""
        trees = (prefixes_of(self._trace).tree(n) for n in (since, at))
        old, new = (file.content.blocks if (file := file_at(tree, path)) is not None else () for tree in trees)
        return [number for number, pair in enumerate(zip(old, new, strict=False)) if pair[0] != pair[1]]

    def _versions(self, at: int, path: str) -> Sequence[int]:
        """The last op of each older version of a file, as it lay at rest, the newest first."""
        now, seen, found = file_at(prefixes_of(self._trace).tree(at), path), set[str](), []
        for op in self._moments_before(at, every=True):
            file = file_at(prefixes_of(self._trace).tree(op), path)
            if file is not None and file.content.digest not in seen:
                seen.add(file.content.digest)
                found.append(op)
        current = now.content.digest if now is not None else ""
        older = [op for op in found if _digest(prefixes_of(self._trace).tree(op), path) != current]
        return _ends(older, VERSIONS_AT_MOST)

    def _moments_before(self, at: int, *, every: bool = False) -> Sequence[int]:
        """Ops before ``at`` after which the directory was at rest, each directory once, the newest first."""
        seen, found = {prefixes_of(self._trace).tree(at).digest}, []
        ops = self._trace.ops[: at - 1] if at else ()
        acts = [op.n for op in ops if isinstance(op, ACTS)] or [op.n for op in ops]
        for op in reversed(acts):
            digest = prefixes_of(self._trace).tree(op).digest
            if digest not in seen:
                seen.add(digest)
                found.append(op)
        return found if every else _ends(found, VERSIONS_AT_MOST)

    # --- places in a file ----------------------------------------------------------------------

    def _records(self, at: int, path: str, data: bytes) -> Sequence[int]:
        """Where records start: lines, and recorded writes."""
        inode = prefixes_of(self._trace).tree(at).lookup(path)
        writes = {op.offset for op in self._trace.ops[:at] if isinstance(op, t.Write) and op.inode == inode}
        lines = {place + 1 for place, byte in enumerate(data) if byte == ord("\n")}
        return _ends(sorted(place for place in {0} | writes | lines if place < len(data)))

    def _bits(self, size: int, records: Sequence[int]) -> Iterator[int]:
        if 8 * size <= self._bound:
            yield from range(8 * size)
            return
        edge = min(EDGE_BYTES, size)
        for place in dict.fromkeys((*range(edge), *range(size - edge, size))):
            # One bit of each byte where little was asked for: which one goes round, so that all come up.
            yield from (8 * place + bit for bit in ((place % 7,) if self._edges else range(8)))
        sectors = _ends(range(0, size, SECTOR_BYTES))
        yield from dict.fromkeys(8 * place for place in (*records, *sectors) if edge <= place < size - edge)

    def _sampled_bits(self, at: int, path: str) -> list[int]:
        file = file_at(prefixes_of(self._trace).tree(at), path)
        if file is None or "bit" not in self._kinds(at):
            return []
        listed, size = {int(number) for number in self.listed(at, path, "bit")}, file.content.size
        left = 8 * size - len(listed)
        # A name is bytes: one that is no text must have its sample too.
        chance = random.Random(os.fsencode(f"{self._seed} {at} {path}"))  # noqa: S311 - a sample, no secret
        picked: set[int] = set()
        while len(picked) < min(self._sample, left):
            number = chance.randrange(8 * size)
            if number not in listed:
                picked.add(number)
        return sorted(picked)

    def _bits_left_out(self, at: int, path: str) -> int:
        file = file_at(prefixes_of(self._trace).tree(at), path)
        if file is None or "bit" not in self._kinds(at):
            return 0
        return 8 * file.content.size - len(set(self.listed(at, path, "bit"))) - len(self._sampled_bits(at, path))


VERSIONS_AT_MOST = 16
"""Of more older versions than this, the newest and the oldest half of so many."""

GARBAGE_SPANS = 4
"""Of the ranges that are zeroed so many are filled with garbage too: the whole file, and the first ones below."""


_LISTED: dict[str, Callable[[bytes], Iterable[str]]] = {
    "missing": lambda _data: ("",),
    "empty": lambda _data: ("",),
    "extra": lambda _data: (*map(str, EXTRA_BYTES), "copy"),
    "foreign": lambda _data: formats.FOREIGN,
    "version": formats.versions,
    "nested": lambda _data: (str(formats.NESTED_DEPTH),),
    "duplicate-key": formats.twice,
    "invalid-utf8": lambda data: map(str, sorted({0, len(data) // 2, len(data) - 1} & set(range(len(data))))),
}
"""The arguments of the kinds that need nothing but the bytes of the file."""


def moments_of(trace: t.Trace, kind: str) -> tuple[int, ...]:
    """After how many ops the files are damaged, in order; the end is always one of them."""
    end = len(trace.ops)
    middle = _with_work_left(trace) if kind in PROGRAMS else _fullest(trace)
    return tuple(sorted({middle, end} - {0})) or (end,)


def _with_work_left(trace: t.Trace) -> int:
    """The last ack or save point before the last effect; else the op before that effect, or the last ack but one."""
    effects = [op.n for op in trace.ops if isinstance(op, t.Effect) and op.counted]
    told = [op.n for op in trace.ops if isinstance(op, (t.Ack, t.SavePoint))]
    if effects:
        before = [n for n in told if n < effects[-1]]
        return before[-1] if before else effects[-1] - 1
    return told[-2] if len(told) > 1 else len(trace.ops)


def _fullest(trace: t.Trace) -> int:
    """The ack at which the files held most bytes: the last one of these."""
    best, most = len(trace.ops), -1
    for op in trace.ops:
        if isinstance(op, t.Ack):
            tree = prefixes_of(trace).tree(op.n)
            size = sum(node.content.size for _, _, node in tree.walk() if isinstance(node, File))
            if size >= most:
                best, most = op.n, size
    end = len(trace.ops)
    return end if prefixes_of(trace).tree(best).digest == prefixes_of(trace).tree(end).digest else best


def truncations(size: int, records: Sequence[int]) -> list[int]:
    """To how many bytes a file is cut: edges, quarters, sectors, blocks, and round each record.

    >>> truncations(10, (0, 5))
    [0, 1, 2, 4, 5, 6, 7, 8, 9]
    """
    sectors = range(SECTOR_BYTES, size, SECTOR_BYTES)
    ends = {*sectors[:1], *sectors[-1:]}
    found = {0, 1, 2, 7, 8, 15, 16, size // 4, size // 2, 3 * size // 4, size - 2, size - 1}
    found |= {place + near for place in ends for near in (-1, 0, 1)}
    found |= {*_ends(range(BLOCK_BYTES, size, BLOCK_BYTES))}
    found |= {place + near for place in records for near in (-1, 0, 1)}
    return sorted(place for place in found if 0 <= place < size)


def spans_of(size: int, records: Sequence[int]) -> list[tuple[int, int]]:
    """Which ranges are zeroed: the file, a block, a sector, a record; and from a record or a sector to the end."""
    if not size:
        return []
    middle = size // 2 // SECTOR_BYTES * SECTOR_BYTES
    found = [(0, size), (0, min(BLOCK_BYTES, size)), (middle, min(middle + SECTOR_BYTES, size))]
    found += [(start, end) for start, end in pairwise((*records, size)) if len(records) > 1][-1:]
    last = (size - 1) // BLOCK_BYTES * BLOCK_BYTES
    found += [(last, size), *((start, size) for start in records)]
    found += [(start, size) for start in _ends(range(SECTOR_BYTES, size, SECTOR_BYTES), PLACES_AT_MOST // 4)]
    return list(dict.fromkeys(found))


def _alike(tried: tuple[Damage, bool]) -> tuple[str, str, int, bool]:
    """Damage of one kind to one file at one moment is alike; bits that were picked by chance are told apart."""
    damage, sampled = tried
    return damage.path, damage.kind, damage.at, sampled


def _ends(places: Sequence[int], limit: int = PLACES_AT_MOST) -> Sequence[int]:
    """All of a few places, or the first and the last of many."""
    half = limit // 2
    return places if len(places) <= limit else (*places[:half], *places[-half:])


def _digest(tree: Tree, path: str) -> str:
    file = file_at(tree, path)
    return file.content.digest if file is not None else ""
