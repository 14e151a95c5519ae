"""Barriers that a trace lacks: where one could stand, how advice is told, and the trace with it.

Candidates are an fsync of the file after each op that changes it, and of the directory after each change
of a name. In a loop one candidate stands for the same step of every turn. Told apart are the kind of the
op, the role of its file, and how many changes of that file follow at once, so that a file written in
pieces has a candidate after its last piece. Whether a barrier helps is asked in :mod:`crashlab.advice`.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from crashlab import trace as t
from crashlab.crash import shapes
from crashlab.crash.micro import key_of
from crashlab.crash.places import place_path
from crashlab.crash.states import Prefixes
from crashlab.tree import File

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_CHANGES_FILE = (t.Create, t.Write, t.Truncate, t.Allocate, t.Chmod, t.SetAttribute)
_CHANGES_ENTRY = (
    *(t.Create, t.MakeDirectory, t.MakeSymlink, t.MakeSpecial, t.Link),
    *(t.Rename, t.Unlink, t.RemoveDirectory),
)
_TOLD_ALTERNATIVES = 2
_TOLD_BARRIERS = 4
_TOLD_APART = 3
"""Of changes of one file that follow each other the last ones so many are candidates of their own."""
_COUNTED = re.compile(r"\d+|[0-9a-f]{6,}")


@dataclass(frozen=True)
class Barrier:
    """An fsync right after each op of ``after``: the same step of every turn.

    ``path`` is the file, or with ``directory`` the name whose directory is meant, at the first of these ops;
    ``inodes`` are what is synced, one per op. ``turn`` says what each op is a step of.

    >>> str(Barrier(after=(3, 8), path="dir/checkpoint.tmp", directory=False, inodes=(7, 9), turn="save"))
    'fsync checkpoint.tmp between ops 3 and 4 (and in 1 later save)'
    """

    after: tuple[int, ...]
    path: str
    directory: bool
    inodes: tuple[int, ...]
    turn: str = ""

    def __str__(self) -> str:
        return f"fsync {self.what} {self.where}{self.again}"

    @property
    def what(self) -> str:
        """What is synced."""
        return f"the directory of {place_path(self.path)}" if self.directory else place_path(self.path)

    @property
    def where(self) -> str:
        """Between which ops, the first time."""
        return f"between ops {self.after[0]} and {self.after[0] + 1}"

    @property
    def again(self) -> str:
        """How often later; empty for a barrier that is needed once."""
        later = len(self.after) - 1
        ending = "" if later == 1 else "s"
        where = f"in {later} later {self.turn}{ending}" if self.turn else f"at {later} later place{ending}"
        return f" (and {where})" if later else ""


@dataclass(frozen=True)
class Advice:
    """``sets`` of barriers, each of which mends all ``failing`` states, and none of which can lose a barrier.

    Without any, ``remaining`` states fail under all barriers at once, ``pattern`` is the protocol that would
    not, and ``partly`` are barriers that mend the others. ``unjudged`` states are left by the first set and were
    never judged; with ``sampled`` states were left out by the bound; without ``complete`` the search met its
    limit. ``tried`` enumerations were made.
    """

    sets: tuple[tuple[Barrier, ...], ...]
    failing: int
    tried: int
    mended: bool
    pattern: str = ""
    partly: tuple[Barrier, ...] = ()
    remaining: int = 0
    unjudged: int = 0
    sampled: bool = False
    complete: bool = True

    def lines(self) -> tuple[str, ...]:
        """What a person reads: the best set, what it brings, other ways, and what the claim leaves open.

        >>> Advice(sets=(), failing=3, tried=4, mended=False, pattern="Use a log.", remaining=1).lines()[0]
        'No barrier mends it: with an fsync after every change, 1 of 3 failing states remains.'
        """
        if not self.failing:
            return ()
        if not self.sets:
            return *self._nothing(), *self._open()
        best, *others = self.sets
        each = {1: "it", 2: "both", 3: "all three"}.get(len(best), f"all {len(best)}")
        text = [f"{sentence(best)}.", f"With {each}, {self._brought()}."]
        text += [f"Or {sentence(other)}." for other in others[:_TOLD_ALTERNATIVES]]
        return *text, *self._open()

    def _nothing(self) -> Iterator[str]:
        if not self.pattern:
            yield "Which barriers would mend it was not found out in time."
            return
        verb = "remains" if self.remaining == 1 else "remain"
        told = f"{self.remaining} of {self.failing} failing states {verb}"
        yield f"No barrier mends it: with an fsync after every change, {told}."
        yield self.pattern
        if self.partly:
            yield f"The other {self.failing - self.remaining} are mended by barriers alone: {sentence(self.partly)}."

    def _brought(self) -> str:
        """What the best set brings; no more is promised than was looked at."""
        if self.sampled or self.unjudged:
            many = self.failing > 1
            return f"none of the {self.failing} failing states can come about" if many else "it cannot come about"
        return (
            f"all {self.failing} failing states are consistent"
            if self.failing > 1
            else "the failing state is consistent"
        )

    def _open(self) -> Iterator[str]:
        if self.sampled:
            yield "Not all states fit the bound: this holds for those that were reached."
        if self.unjudged and self.sets:
            yield f"{self.unjudged:,} of the states that may still come about were not judged: check again with it."
        if not self.complete and self.sets:
            yield f"The search ended after {self.tried} enumerations; fewer barriers may do."


def sentence(barriers: Sequence[Barrier]) -> str:
    """A set of barriers in one sentence, without its full stop.

    >>> file = Barrier(after=(3,), path="dir/checkpoint.tmp", directory=False, inodes=(7,))
    >>> sentence([file, Barrier(after=(4,), path="dir/checkpoint.json", directory=True, inodes=(1,))])
    'fsync checkpoint.tmp between ops 3 and 4, and its directory between ops 4 and 5'
    """
    alike = len({barrier.again for barrier in barriers}) == 1
    parts = []
    for before, barrier in zip([None, *barriers], barriers, strict=False):
        its = barrier.directory and before is not None and _parent(before.path) == _parent(barrier.path)
        what = "its directory" if its and before and not before.directory else barrier.what
        parts.append(f"{what} {barrier.where}{'' if alike else barrier.again}")
    if len(parts) > _TOLD_BARRIERS + 1:
        parts = [*parts[:_TOLD_BARRIERS], f"at {len(parts) - _TOLD_BARRIERS} more places"]
    joined = ", ".join([*parts[:-1], f"and {parts[-1]}"]) if len(parts) > 1 else parts[0]
    return f"fsync {joined}{barriers[0].again if alike else ''}"


def with_barriers(trace: t.Trace, barriers: Iterable[Barrier]) -> t.Trace:
    """The trace with an fsync right after each op that a barrier names, and its ops numbered anew.

    >>> from crashlab.tree import Tree
    >>> trace = t.Trace(root="/r", base=Tree.empty(), ops=(t.Create(n=1, path="a", inode=7), t.Ack(n=2)))
    >>> [op.KIND for op in with_barriers(trace, [Barrier(after=(1,), path="a", directory=True, inodes=(0,))]).ops]
    ['create', 'fsync', 'ack']
    """
    added: dict[int, list[t.Fsync]] = {}
    for barrier in sorted(barriers, key=position):
        path = _parent(barrier.path) if barrier.directory else barrier.path
        for n, inode in zip(barrier.after, barrier.inodes, strict=True):
            added.setdefault(n, []).append(t.Fsync(n=n, path=path, inode=inode))
    return numbered(trace, itertools.chain.from_iterable((op, *added.get(op.n, ())) for op in trace.ops))


def numbered(trace: t.Trace, ops: Iterable[t.Op]) -> t.Trace:
    """The trace with these ops instead of its own, counted from 1."""
    return replace(trace, ops=tuple(replace(op, n=n) for n, op in enumerate(ops, start=1)))


def position(barrier: Barrier) -> tuple[object, ...]:
    """What barriers are sorted by: the earliest first, of a place the file before the directory."""
    return barrier.after, barrier.directory, barrier.inodes, barrier.path


def _parent(path: str) -> str:
    return path.rpartition("/")[0]


# --- candidates -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Site:
    """One place for a barrier: after op ``n``. ``rest`` changes of the same file follow at once."""

    n: int
    path: str
    inode: int
    directory: bool
    rest: int = 0


def candidates(trace: t.Trace, before: int) -> tuple[Barrier, ...]:
    """Every barrier that may be worth a try after an op below ``before``, the earliest first.

    Left out is what the trace has already: an fsync of the same file or directory right there.

    >>> ops = (t.Create(n=1, path="dir/a", inode=7), t.Write(n=2, path="dir/a", inode=7, offset=0, data=b"hi"))
    >>> from crashlab.tree import Tree
    >>> base = Tree.empty().apply(t.MakeDirectory(n=1, path="dir", inode=1))
    >>> for barrier in candidates(t.Trace(root="/r", base=base, ops=(*ops, t.Ack(n=3))), 3):
    ...     print(barrier)
    fsync a between ops 1 and 2
    fsync the directory of a between ops 1 and 2
    fsync a between ops 2 and 3
    """
    roles, groups = _Roles(trace), dict[tuple[object, ...], list[_Site]]()
    for site in _sites(trace, before):
        op = trace.op(site.n)
        key = site.directory, op.KIND, roles(site.n, site.path), min(site.rest, _TOLD_APART)
        groups.setdefault(key, []).append(site)
    return tuple(sorted((_barrier(trace, group) for group in groups.values()), key=position))


def _sites(trace: t.Trace, before: int) -> Iterator[_Site]:
    trees = Prefixes(trace)
    for op in trace.ops[: before - 1]:
        tree = trees.tree(op.n)
        if isinstance(op, _CHANGES_FILE) and not op.path.startswith(f"{shapes.TEMPORARY}/"):
            synced = isinstance(op, t.Write) and op.sync == "all"
            if isinstance(tree.nodes.get(op.inode), File) and not synced and not _has_barrier(trace, op.n, op.inode):
                yield _Site(op.n, op.path, op.inode, directory=False, rest=_rest(trace, op))
        found = set()
        for path in _entries(op):
            directory = key_of(tree, path)[0]
            if directory not in found and not _has_barrier(trace, op.n, directory):
                yield _Site(op.n, path, directory, directory=True)
            found.add(directory)


def _entries(op: t.Op) -> Iterator[str]:
    """The names that an op changes, the new one first."""
    if isinstance(op, t.Rename):
        yield op.to
    if isinstance(op, _CHANGES_ENTRY) and op.path and not op.path.startswith(f"{shapes.TEMPORARY}/"):
        yield op.path


def _has_barrier(trace: t.Trace, n: int, inode: int) -> bool:
    following = itertools.takewhile(lambda op: isinstance(op, t.BARRIERS), trace.ops[n:])
    return any(
        isinstance(op, t.Sync) or (isinstance(op, t.Fsync) and op.inode == inode and not op.data_only)
        for op in following
    )


def _rest(trace: t.Trace, op: t.FileOp) -> int:
    """How many changes of the same file follow with nothing between them."""
    alike = itertools.takewhile(
        lambda each: isinstance(each, _CHANGES_FILE) and each.inode == op.inode, trace.ops[op.n : op.n + _TOLD_APART]
    )
    return sum(1 for _ in alike)


class _Roles:
    """What a path is for: its name without numbers; of a name that is used once, the name that the file gets."""

    def __init__(self, trace: t.Trace) -> None:
        self._renames = [op for op in trace.ops if isinstance(op, t.Rename)]
        made = {(op.path, op.inode) for op in trace.ops if isinstance(op, t.Create)}
        self._uses = Counter(path for path, _ in made)

    def __call__(self, n: int, path: str) -> str:
        """The role of ``path`` at op ``n``."""
        if self._uses[path] == 1:
            path = next((f"{op.to} to be" for op in self._renames if op.n > n and op.path == path), path)
        return _COUNTED.sub("#", path)


def _barrier(trace: t.Trace, group: Sequence[_Site]) -> Barrier:
    first = group[0]
    calls = [next((op for op in reversed(trace.ops[: site.n]) if isinstance(op, t.Call)), None) for site in group]
    names = {call.name if call else "" for call in calls}
    alone = len({call.n for call in calls if call}) == len(group)
    turn = names.pop() if alone and len(names) == 1 else ""
    after, inodes = tuple(site.n for site in group), tuple(site.inode for site in group)
    return Barrier(after, first.path, first.directory, inodes, turn)


def parts_of(trace: t.Trace, barrier: Barrier) -> list[Barrier]:
    """A barrier taken apart by the line that asked for the op, and by what comes after it."""
    groups: dict[tuple[object, ...], list[_Site]] = {}
    for n, inode in zip(barrier.after, barrier.inodes, strict=True):
        op = trace.op(n)
        following = next((each.KIND for each in trace.ops[n:] if not isinstance(each, t.BARRIERS)), "")
        path = next(_entries(op), barrier.path) if barrier.directory else getattr(op, "path", barrier.path)
        groups.setdefault((op.at, following), []).append(_Site(n, path, inode, barrier.directory))
    return [_barrier(trace, group) for group in groups.values()]


def joined(parts: Sequence[Barrier]) -> Barrier:
    """One barrier at all places of these."""
    first = min(parts, key=position)
    places = sorted(place for part in parts for place in zip(part.after, part.inodes, strict=True))
    after, inodes = zip(*places, strict=True)
    return replace(first, after=after, inodes=inodes)


def role_of(trace: t.Trace, barrier: t.Op) -> tuple[object, ...]:
    """What tells barriers of a trace apart that are no same step of several turns."""
    roles = _Roles(trace)
    before = next((op for op in reversed(trace.ops[: barrier.n - 1]) if not isinstance(op, t.BARRIERS)), None)
    path = roles(before.n, before.path) if isinstance(before, t.FileOp) else ""
    synced = roles(barrier.n, barrier.path) if isinstance(barrier, t.Fsync) else None
    return barrier.KIND, synced, isinstance(barrier, t.Fsync) and barrier.data_only, before and before.KIND, path
