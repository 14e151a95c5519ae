"""When the power may fail, and what is durable at each such moment.

Between barriers the set of what may be on disk only grows. So these moments hold every state: just
before each barrier completes, each ack, each effect, and the end. Floors are kept as a list of
steps, one per barrier that raised them, and looked up by the number of completed ops.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from crashlab import trace as t
from crashlab.content import BLOCK_BYTES
from crashlab.crash.micro import Barrier, History, Key, Version, key_of, named_in
from crashlab.crash.rules import Seen
from crashlab.tree import Directory, Symlink, Tree

if TYPE_CHECKING:
    from collections.abc import Iterable

    from crashlab.content import Content
    from crashlab.crash.micro import Event
    from crashlab.crash.profiles import Profile


@dataclass(frozen=True, slots=True, order=True)
class Moment:
    """``done`` ops have completed, ``started`` have begun: as many, or one more."""

    done: int
    started: int


def moment_after(trace: t.Trace, done: int) -> Moment:
    """The moment after ``done`` ops. A synchronous write that comes next has begun: it is its own barrier."""
    following = trace.ops[done] if done < len(trace.ops) else None
    return Moment(done, done + (isinstance(following, t.Write) and bool(following.sync)))


def moments_of(trace: t.Trace) -> list[Moment]:
    """The moments that hold every state, in order."""
    found = [
        moment_after(trace, op.n - 1)
        for op in trace.ops
        if isinstance(op, (t.Fsync, t.Sync, t.Ack, t.Effect)) or (isinstance(op, t.Write) and op.sync)
    ]
    return [*found, Moment(len(trace.ops), len(trace.ops))]


@dataclass(slots=True)
class Steps:
    """A number that barriers raise: ``at(done)`` is its value once ``done`` ops have completed."""

    ops: list[int]
    values: list[int]

    @staticmethod
    def zero() -> Steps:
        """Nothing is forced at first."""
        return Steps([0], [0])

    def raise_to(self, op: int, value: int) -> None:
        """From the completion of ``op`` on the number is at least ``value``."""
        if value > self.values[-1]:
            self.ops.append(op)
            self.values.append(value)

    def at(self, done: int) -> int:
        """The value after ``done`` completed ops."""
        return self.values[bisect_right(self.ops, done) - 1]


class Span(NamedTuple):
    """Positions among the events of a file: of the first that is not forced, and of the first that has not begun.

    Of the events before ``synced`` the synchronous writes have completed: the pages that they wrote are forced.
    Those before ``swept`` have been written out by a sync that need not have flushed the disk (F5).
    """

    start: int
    end: int
    synced: int
    swept: int


@dataclass(slots=True)
class GivenUp:
    """Of a file of which a barrier failed: after how many events, the blocks that were not written, and those of
    them that stay unwritten though they are written again."""

    count: int
    lost: set[int]
    unwritten: set[int]


class DataFloors:
    """How many events of each file are forced: by any barrier on the file, and by sync."""

    def __init__(self, history: History, profile: Profile) -> None:
        self._history = history
        self._ops = {inode: [event.op for event in events] for inode, events in history.events.items()}
        self._steps = {inode: Steps.zero() for inode in history.events}
        self._synced = {inode: Steps.zero() for inode in history.events}
        self._swept = {inode: Steps.zero() for inode in history.events}
        self._events = {inode: list(events) for inode, events in history.events.items()}
        self._given_up: dict[int, GivenUp] = {}
        for op in history.trace.ops:
            if isinstance(op, t.Fsync) and op.failed and op.inode in self._steps:
                self._give_up(profile, op.inode, bisect_right(self._ops[op.inode], op.n))
            barrier = history.barriers.get(op.n)
            if barrier is None:
                continue
            self._flush(barrier)
            for inode in self._steps if barrier.inode is None else {barrier.inode} & self._steps.keys():
                count = bisect_right(self._ops[inode], barrier.op)
                self._raised_by(op, profile, inode, count)[inode].raise_to(barrier.op, count)

    def _raised_by(self, op: t.Op, profile: Profile, inode: int, count: int) -> dict[int, Steps]:
        """Which of the floors a barrier raises: the whole one, or one that forces a part of the events."""
        mended = self._is_mended(inode, count)
        if not mended or (isinstance(op, t.Write) and not self._covers(profile, inode, count)):
            return self._synced
        return self._swept if isinstance(op, t.Sync) and not self._sweeps_all(profile, inode, count) else self._steps

    def _flush(self, barrier: Barrier) -> None:
        """What syncs wrote out is forced by a barrier that surely flushes: on a file, or with something in the log."""
        for inode, swept in self._swept.items():
            written, count = swept.ops[-1], swept.values[-1]
            logged = self._history.issued[barrier.op] > self._history.issued[written]
            flushes = not barrier.directory and (barrier.inode is not None or logged)
            if count and flushes and inode not in self._given_up:
                self._steps[inode].raise_to(barrier.op, count)

    def _sweeps_all(self, profile: Profile, inode: int, count: int) -> bool:
        """Whether sync forces all that is pending of ``count`` events."""
        return all(
            profile.sync_forces(event.old, block)
            for event in self._events[inode][self._steps[inode].values[-1] : count]
            for block in event.blocks
        )

    def _give_up(self, profile: Profile, inode: int, count: int) -> None:
        """A barrier failed: of the events up to ``count`` those that were not durable stay optional for ever.

        Later barriers force what was written after them, page by page, until all of their pages were written
        again. Measured on ext4, xfs and btrfs; cited: fsync failures (Rebello, ATC'20).
        """
        events, start = self._events[inode], self._steps[inode].values[-1]
        size = events[start - 1].size if start else self._history.base_content(inode).size
        lost = {block for event in events[start:count] for block in event.blocks}
        lost |= self._given_up[inode].lost if inode in self._given_up else set()
        given_up = GivenUp(count, lost, {block for block in lost if profile.stays_unwritten(block, size)})
        self._given_up[inode] = given_up
        unwritten = set(given_up.unwritten)
        for index, event in enumerate(events[count:], count):
            if event.kind == "write":
                own = frozenset(unwritten & set(event.blocks))
                after = event.after_failure or not event.synced
                events[index] = replace(event, synced=True, after_failure=after, unwritten=own)
            elif event.kind == "size":
                unwritten = {block for block in unwritten if block * BLOCK_BYTES < event.size}

    def _is_mended(self, inode: int, count: int) -> bool:
        """Whether each page that was given up was written again, or cut off, among the first ``count`` events."""
        given_up = self._given_up.get(inode)
        if given_up is None:
            return True
        for event in self._events[inode][given_up.count : count]:
            if event.kind == "size":
                given_up.lost = {block for block in given_up.lost if block * BLOCK_BYTES < event.size}
                given_up.unwritten &= given_up.lost
            given_up.lost -= set(event.blocks) - given_up.unwritten
        given_up.count = max(count, given_up.count)
        if not given_up.lost:
            del self._given_up[inode]
        return not given_up.lost

    def _covers(self, profile: Profile, inode: int, count: int) -> bool:
        """Whether the last of ``count`` events, a synchronous write, forces all that the earlier ones did."""
        pending = self._events[inode][self._steps[inode].values[-1] : count]
        pages, size = profile.synced_write(pending[-1].blocks, pending[-1].size)
        return size == pending[-1].size and all(
            not event.blocks or (pages.start <= event.blocks.start and event.blocks.stop <= pages.stop)
            for event in pending
        )

    def span(self, inode: int, moment: Moment) -> Span:
        """What of the events of a file is forced, and what has begun."""
        if inode not in self._steps:
            return Span(0, 0, 0, 0)
        start, end = self._steps[inode].at(moment.done), bisect_right(self._ops[inode], moment.started)
        synced, swept = (steps[inode].at(moment.done) for steps in (self._synced, self._swept))
        return Span(start, end, max(start, synced), max(start, swept))

    def pending(self, inode: int, span: Span) -> tuple[Content, list[Event]]:
        """The durable content of a file, and the events that may or may not show."""
        events, base = self._events.get(inode, []), self._history.base_content(inode)
        durable = events[span.start - 1].content if span.start else base
        return durable, events[span.start : span.end]


def journal_floors(history: History, profile: Profile) -> Steps:
    """How many links of the chain are forced."""
    seen, steps = Seen(), Steps.zero()
    for op in history.trace.ops:
        issued = history.issued[op.n]
        for position in range(history.issued[op.n - 1] + 1, issued + 1):
            _see(seen, history, position)
            if isinstance(op, t.Rename):
                steps.raise_to(op.n, profile.rename_forces(position))
        if isinstance(op, t.Fsync) and op.failed:
            seen.grown.pop(op.inode, None)  # the growth may never be written, and then nothing hangs on it
        if isinstance(op, t.Write) and any(event.grows for event in _events_at(history, op)):
            seen.grown[op.inode] = issued
        barrier = history.barriers.get(op.n)
        if barrier is not None and isinstance(op, t.Write):
            grown = {op.inode: _grown(profile, history.events[op.inode], op.n)}
            steps.raise_to(op.n, _forced(profile, replace(seen, grown=grown), barrier))
        elif barrier is not None:
            steps.raise_to(op.n, issued if barrier.inode is None else _forced(profile, seen, barrier))
    return steps


def _grown(profile: Profile, events: list[Event], n: int) -> int:
    """How much of the chain goes before the last growth that the synchronous write ``n`` forces, be it in part."""
    last = bisect_right(events, n, key=_op_of)
    _, size = profile.synced_write(events[last - 1].blocks, events[last - 1].size)
    forced = (event.before for event in reversed(events[:last]) if event.grows and event.old < size)
    return next(forced, 0)


def _op_of(event: Event) -> int:
    return event.op


def _events_at(history: History, op: t.FileOp) -> Iterable[Event]:
    events = history.events.get(op.inode, [])
    at = bisect_right(events, op.n, key=_op_of)
    return events[at - 1 : at] if at and events[at - 1].op == op.n else ()


def _see(seen: Seen, history: History, position: int) -> None:
    link = history.chain[position - 1]
    for inode in link.touches:
        seen.touched[inode] = position
        if link.sets_size or link.creates:
            seen.resized[inode] = position
    for name in link.names:
        seen.entries[name.key[0]] = position


def _forced(profile: Profile, seen: Seen, barrier: Barrier) -> int:
    assert barrier.inode is not None
    if barrier.directory:
        forced = profile.directory_forced(data_only=barrier.data_only)
        rule = profile.fsync_directory if forced else profile.fdatasync
    else:
        rule = profile.fdatasync if barrier.data_only else profile.fsync
    return rule(seen, barrier.inode)


def whole_floors(history: History, profile: Profile) -> Steps:
    """``data=journal``: the last op that is forced, where all micro-ops form one chain."""
    steps, seen = Steps.zero(), Seen()
    for op in history.trace.ops:
        changes = history.running[op.n] is not history.running[op.n - 1]
        if changes and isinstance(op, t.FileOp) and not isinstance(op, t.SetTimes):
            seen.touched[op.inode] = op.n
            if isinstance(op, (t.Write, t.Truncate, t.Allocate, t.Create, t.MakeDirectory)):
                seen.resized[op.inode] = op.n
            for name in _names_at(history, op.n):
                seen.entries[name] = op.n
        barrier = history.barriers.get(op.n)
        if barrier is None:
            continue
        if barrier.inode is None:
            steps.raise_to(op.n, op.n)
        elif barrier.data_only and not (barrier.directory and profile.directory_forced(data_only=True)):
            steps.raise_to(op.n, seen.resized.get(barrier.inode, 0))
        else:
            steps.raise_to(op.n, max(seen.touched.get(barrier.inode, 0), seen.entries.get(barrier.inode, 0)))
    return steps


def _names_at(history: History, n: int) -> Iterable[int]:
    """Directories of which op ``n`` changed an entry."""
    for link in history.chain[history.issued[n - 1] : history.issued[n]]:
        for name in link.names:
            yield name.key[0]


@dataclass(frozen=True, slots=True)
class Choice:
    """What an entry may mean: ``inode`` since ``op``, or nothing. ``vanished``: by rule B3."""

    inode: int | None
    op: int
    vanished: bool = False


class EntryFloors:
    """Which versions of each entry may show, and which inodes must keep a name."""

    def __init__(self, history: History, profile: Profile) -> None:
        self._history, self._profile = history, profile
        self._covered = {key: Steps.zero() for key in history.entries}
        self._ops = {key: [version.op for version in versions] for key, versions in history.entries.items()}
        self._pinned: dict[int, list[int]] = {}
        self._synced: dict[int, int] = {}
        self._moved: set[int] = set()
        self._durable: dict[int, int] = dict.fromkeys(named_in(history.trace.base), 0)
        self.attributes = {inode: Steps.zero() for inode in history.attributes}
        self._unsynced_renames = self._walk()
        renames = (op for op in history.trace.ops if isinstance(op, t.Rename))
        self._swaps = {op.n for op in renames if _swaps_link(history, op, history.running[op.n - 1])}

    def _walk(self) -> set[int]:
        """Go through the ops; returns the renames that replaced a name by a file not synced before."""
        unsynced: set[int] = set()
        for op in self._history.trace.ops:
            if isinstance(op, (t.Rename, t.Link)):
                if op.inode not in self._synced:
                    unsynced.add(op.n)
                self._moved.add(op.inode)
            barrier = self._history.barriers.get(op.n)
            if barrier is not None and barrier.inode is None:
                self._sync(barrier.op)
            elif barrier is not None:
                self._fsync(barrier, barrier.inode)
        return unsynced

    def _sync(self, n: int) -> None:
        for key in self._history.entries:
            self._cover(key, n)
        for inode in named_in(self._history.running[n]):
            self._durable.setdefault(inode, n)
        for inode in self._history.running[n].nodes:
            self._synced.setdefault(inode, n)
        for inode, steps in self.attributes.items():
            steps.raise_to(n, bisect_right(self._history.attributes[inode], n))

    def _cover(self, key: Key, n: int) -> None:
        self._covered[key].raise_to(n, bisect_right(self._ops[key], n) - 1)

    def _fsync(self, barrier: Barrier, inode: int | None) -> None:
        assert inode is not None
        n = barrier.op
        if barrier.directory:
            if not self._profile.directory_forced(data_only=barrier.data_only):
                return
            barrier = replace(barrier, data_only=False)
        if not barrier.data_only and inode in self.attributes:
            self.attributes[inode].raise_to(n, bisect_right(self._history.attributes[inode], n))
        if self._profile.names_forced(data_only=barrier.data_only, moved=inode in self._moved):
            self._pinned.setdefault(inode, []).append(n)
            self._durable.setdefault(inode, n)
        if not barrier.data_only or inode not in self._moved:
            self._synced.setdefault(inode, n)
        if barrier.directory:
            for key in self._history.entries:
                if key[0] == inode:
                    self._cover(key, n)
            if inode in self._durable:
                self._keep_below(inode, n)

    def _keep_below(self, inode: int, n: int) -> None:
        """The forced entries of a durable directory are durable names."""
        node = self._history.running[n].nodes[inode]
        assert isinstance(node, Directory)
        for name, child in node.entries.items():
            key = inode, name
            forced = key not in self._covered or self._covered[key].at(n) == bisect_right(self._ops[key], n) - 1
            if forced and child not in self._durable:
                self._durable[child] = n
                if isinstance(self._history.running[n].nodes[child], Directory):
                    self._keep_below(child, n)

    def required(self, named: Iterable[int], done: int) -> frozenset[int]:
        """B4: of the inodes that the running system names, those that were durably named once."""
        never = done + 1
        return frozenset(inode for inode in named if self._durable.get(inode, never) <= done)

    def durable(self, key: Key, moment: Moment) -> int | None:
        """What an entry meant when it was last forced."""
        return self._history.entries[key][self._covered[key].at(moment.done)].inode

    def choices(self, key: Key, moment: Moment) -> tuple[Choice, ...]:
        """What an entry may mean at a moment, newest first."""
        end = bisect_right(self._ops[key], moment.started)
        start = self._profile.first_version(self._covered[key].at(moment.done))
        versions = self._history.entries[key][:end]
        current = versions[-1]
        if self._pins(current.inode, current.op, moment.done):
            return (Choice(current.inode, current.op),)
        found: dict[int | None, Choice] = {}
        for index in range(end - 1, start - 1, -1):
            version = versions[index]
            replaced = index < end - 1 and self._pins(version.inode, versions[index + 1].op, moment.done)
            if not replaced and version.inode not in found:
                found[version.inode] = Choice(version.inode, version.op)
            if index > start and None not in found and self._vanishes(version):
                found[None] = Choice(None, version.op, vanished=True)
        return tuple(found.values())

    def _pins(self, inode: int | None, since: int, done: int) -> bool:
        """Whether fsync of ``inode`` after op ``since`` has said what its names are."""
        pins = self._pinned.get(inode, []) if inode is not None else []
        return bool(pins) and bisect_right(pins, done) > bisect_right(pins, since)

    def _vanishes(self, version: Version) -> bool:
        unsynced = version.op in self._unsynced_renames
        swapped = version.op in self._swaps
        return version.over and self._profile.may_vanish(source_synced=not unsynced, link_swapped=swapped)


def _swaps_link(history: History, op: t.Rename, before: Tree) -> bool:
    """Whether a rename within one directory replaces a link that never had a name elsewhere, nor left one to a file."""
    link, (directory, _) = before.lookup(op.to), key_of(before, op.to)
    if link is None or not isinstance(before.nodes[link], Symlink) or key_of(before, op.path)[0] != directory:
        return False
    base = history.trace.base.nodes
    homes = (inode for inode, node in base.items() if isinstance(node, Directory) and link in node.entries.values())
    if link in base and set(homes) != {directory}:
        return False
    for key, versions in history.entries.items():
        meant = [version.inode for version in versions if version.op < op.n]
        if link in meant:
            later = (before.nodes.get(inode) for inode in meant[meant.index(link) :] if inode is not None)
            if key[0] != directory or not all(isinstance(node, Symlink) for node in later):
                return False
    return True
