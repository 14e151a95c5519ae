"""A barrier that failed: no barrier, and what it should have written stays optional until it is written again."""

from __future__ import annotations

from dataclasses import replace

import pytest

from crashlab import trace as t
from crashlab.crash import rules
from crashlab.crash.losses import Losses
from crashlab.crash.profiles import EXT4, parse_profiles
from crashlab.tree import Tree

PROFILES = ("ext4", "xfs", "btrfs", "posix")
NEW, OLD = b"new!" * 1024, b"old." * 1024


def trace_of(*ops: t.Op, base: bytes | None = None) -> t.Trace:
    tree = Tree.empty()
    if base is not None:
        tree = tree.apply(t.Create(n=1, path="a", inode=7))
        tree = tree.apply(t.Write(n=2, path="a", inode=7, offset=0, data=base))
    return t.Trace(root="/r", base=tree, ops=ops)


def contents(trace: t.Trace, profile: str, *, done: int) -> set[bytes | None]:
    """What file ``a`` may hold after a power loss at moment ``done``."""
    states = Losses(trace, parse_profiles(profile)).states()
    nodes = [state.tree.node("a") for state in states if state.done == done]
    return {None if node is None else node.content.read() for node in nodes}


def later(ops: tuple[t.Op, ...]) -> list[t.Op]:
    return [replace(op, n=op.n + 1) for op in ops]


def write(n: int, data: bytes = NEW, offset: int = 0) -> t.Op:
    return t.Write(n=n, path="a", inode=7, offset=offset, data=data)


def fsync(n: int, *, failed: bool = False) -> t.Op:
    return t.Fsync(n=n, path="a", inode=7, failed=failed)


@pytest.mark.parametrize("profile", PROFILES)
def test_the_next_barrier_forces_nothing_that_was_given_up(profile: str) -> None:
    """The retry returned, and old and new content are both possible."""
    trace = trace_of(write(1), fsync(2, failed=True), fsync(3), t.Ack(n=4), base=OLD)
    assert contents(trace, profile, done=4) == {OLD, NEW}


@pytest.mark.parametrize("profile", PROFILES)
def test_without_the_failure_the_barrier_forces_it(profile: str) -> None:
    """The correct twin of the trace above."""
    trace = trace_of(write(1), fsync(2), fsync(3), t.Ack(n=4), base=OLD)
    assert contents(trace, profile, done=4) == {NEW}


@pytest.mark.parametrize("profile", PROFILES)
def test_sync_forces_nothing_that_was_given_up(profile: str) -> None:
    """Nor does a barrier on everything."""
    trace = trace_of(write(1), fsync(2, failed=True), t.Sync(n=3), t.Ack(n=4), base=OLD)
    assert contents(trace, profile, done=4) == {OLD, NEW}


@pytest.mark.parametrize("profile", PROFILES)
def test_written_again_and_synced_again_it_is_durable(profile: str) -> None:
    """Rewriting every page, then a barrier that succeeds."""
    trace = trace_of(write(1), fsync(2, failed=True), write(3), fsync(4), t.Ack(n=5), base=OLD)
    assert contents(trace, profile, done=5) == {NEW}


@pytest.mark.parametrize("profile", PROFILES)
def test_a_page_that_was_not_written_again_stays_optional(profile: str) -> None:
    """Two pages given up, the first written again: it is forced, the second is not."""
    trace = trace_of(write(1, NEW * 2), fsync(2, failed=True), write(3), fsync(4), t.Ack(n=5), base=OLD * 2)
    assert contents(trace, profile, done=5) == {NEW + OLD, NEW + NEW}


@pytest.mark.parametrize("profile", PROFILES)
def test_earlier_barriers_keep_what_they_forced(profile: str) -> None:
    """Only what was dirty at the failure is given up."""
    create = t.Create(n=1, path="a", inode=7)
    grown = (write(2), fsync(3), write(4, OLD, 4096), fsync(5, failed=True), fsync(6), t.Ack(n=7))
    found = contents(trace_of(create, t.Fsync(n=2, path="", inode=0), *later(grown)), profile, done=8)
    assert all(content is not None and content[:4096] == NEW for content in found)
    assert NEW + OLD in found
    assert len(found) > 1


@pytest.mark.parametrize("profile", PROFILES)
def test_a_new_file_whose_barrier_failed_may_be_empty_or_zeros(profile: str) -> None:
    """Size 0 on all; a full size with zeros where the size does not say that the data is there."""
    trace = trace_of(t.Create(n=1, path="a", inode=7), write(2), fsync(3, failed=True), fsync(4), t.Ack(n=5))
    found = contents(trace, profile, done=5)
    assert {b"", NEW} <= found
    assert (bytes(4096) in found) == (profile != "xfs")


@pytest.mark.parametrize("profile", [*PROFILES, "ext4[dioread_lock]"])
def test_a_new_block_that_is_written_again_stays_unwritten_on_ext4(profile: str) -> None:
    """Measured: the data reaches the disk, fsync returns 0, and after a restart the block reads as zeros."""
    create = t.Create(n=1, path="a", inode=7)
    trace = trace_of(create, write(2), fsync(3, failed=True), write(4), fsync(5), t.Ack(n=6))
    unwritten = {bytes(4096), NEW} if profile in ("ext4", "posix") else {NEW}
    assert contents(trace, profile, done=6) - {None} == unwritten


def test_without_the_rule_of_unwritten_blocks_the_zeros_are_missed() -> None:
    """X5 broken: ext4 would promise what a real one has not kept."""
    create = t.Create(n=1, path="a", inode=7)
    trace = trace_of(create, write(2), fsync(3, failed=True), write(4), fsync(5), t.Ack(n=6))
    states = list(Losses(trace, [replace(EXT4, stays_unwritten=rules.rewriting_mends)]).states())
    nodes = [state.tree.node("a") for state in states if state.done == 6]
    assert {node.content.read() for node in nodes if node is not None} == {NEW}


@pytest.mark.parametrize("profile", PROFILES)
def test_cut_off_and_written_again_it_is_durable(profile: str) -> None:
    """A truncation before the second write mends it everywhere."""
    cut = t.Truncate(n=4, path="a", inode=7, size=0)
    create = t.Create(n=1, path="a", inode=7)
    trace = trace_of(create, write(2), fsync(3, failed=True), cut, write(5), fsync(6), t.Ack(n=7))
    assert contents(trace, profile, done=7) - {None} == {NEW}


def test_a_failed_barrier_survives_json() -> None:
    """The trace that is stored is the trace that was judged."""
    refused = t.Refused(n=1, call="fsync", error="EIO")
    trace = trace_of(refused, t.Fsync(n=2, path="a", inode=7, failed=True), base=OLD)
    assert t.Trace.from_json(trace.to_json()) == trace
