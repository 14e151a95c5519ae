"""The two worlds agree: what real file systems leave is what the model allows, and famous states are seen."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

from crashlab import directory
from crashlab import trace as t
from crashlab.crash.moments import Moment
from crashlab.disk.disk import RealDisk
from crashlab.disk.enact import Actor, Verdict, enact, judge, moments, pages_of
from crashlab.disk.log import DiskLog, Flush, Mark
from crashlab.disk.perturb import BYSTANDER, Perturbation, with_bystanders
from crashlab.recover.place import base_tree
from crashlab.tree import Tree
from tests.crashlab.disk.needs import kinds, needs
from tests.crashlab.traces import ROOT, create, trace_of, write

if TYPE_CHECKING:
    from pathlib import Path

OLD, NEW = b"o" * 9000, b"n" * 20_000
NOTHING = ("nothing",)
IN_BETWEEN = ("nothing", "fsync here", "fsync there")


def replaced(*, fsync: bool = False) -> t.Trace:
    """A file that is there for long is replaced by tmp + rename."""
    barrier = [(t.Fsync, {"path": "dir/tmp1", "inode": 51})] if fsync else []
    rename = t.Rename, {"path": "dir/tmp1", "to": "dir/ck", "inode": 51}
    made = trace_of(create("tmp1", 51), write("tmp1", 51, NEW), *barrier, rename)
    base = made.base.apply(t.Create(n=1, path="dir/ck", inode=50))
    base = base.apply(t.Write(n=2, path="dir/ck", inode=50, offset=0, data=OLD))
    return t.Trace(root=ROOT, base=base, ops=made.ops)


def shown(
    disk: RealDisk, trace: t.Trace, *, seeds: int = 4, profile: str | None = None, **options: Any
) -> tuple[Verdict, t.Trace]:
    """The verdict over several perturbed runs."""
    whole = Verdict()
    for seed in range(seeds):
        seen = enact(disk, trace, seed=seed, **options)
        one = judge(disk, seen, profile, seed=seed, per_moment=8)
        whole.images += one.images
        whole.trees.update(one.trees)
        whole.outside += one.outside
    return whole, seen


def contents(verdict: Verdict, path: str = "dir/ck") -> set[bytes | None]:
    nodes = [tree.node(path) for tree in verdict.trees.values() if tree.node("dir/tmp1") is None]
    return {None if node is None else node.content.read() for node in nodes}


@pytest.mark.parametrize("kind", kinds("ext4", "ext4[noauto_da_alloc]", "ext4[data=journal]", "xfs", "btrfs"))
def test_a_rename_without_fsync_leaves_only_what_the_model_allows(kind: str) -> None:
    """Old, new and what lies between: many images, none outside, and more than one state is seen."""
    with RealDisk(kind) as disk:
        verdict, _ = shown(disk, replaced(), held=True)
    assert verdict.outside == []
    assert verdict.images >= 20
    assert {OLD, NEW} <= contents(verdict)


@needs("ext4")
def test_ext4_shows_full_size_and_zeros_while_data_is_slow_and_not_with_dioread_lock() -> None:
    """The size is committed before the data arrives: zeros after a rename. The option takes them away."""
    with RealDisk("ext4") as disk:
        verdict, seen = shown(disk, replaced(), held=True, actions=IN_BETWEEN)
        assert bytes(len(NEW)) in contents(verdict)
        assert verdict.outside == []
        assert judge(disk, seen, "ext4[dioread_lock]", seed=3, per_moment=8).outside, "a false promise must be caught"
    with RealDisk("ext4[dioread_lock]") as disk:
        verdict, _ = shown(disk, replaced(), held=True, actions=IN_BETWEEN)
        assert bytes(len(NEW)) not in contents(verdict)
        assert verdict.outside == []


@needs("xfs")
def test_xfs_shows_an_empty_file_after_a_rename() -> None:
    """The rename is committed, the data and the size are not: 0 bytes under the old name."""
    with RealDisk("xfs") as disk:
        verdict, _ = shown(disk, replaced(), actions=IN_BETWEEN)
        assert b"" in contents(verdict)
        assert verdict.outside == []
        told, _ = shown(disk, replaced(), actions=IN_BETWEEN, profile="ext4")
        assert told.outside, "ext4 promises what xfs does not keep"


@pytest.mark.parametrize("kind", kinds("ext4", "xfs", "btrfs"))
def test_with_an_fsync_before_the_rename_the_file_is_old_or_new(kind: str) -> None:
    """The negative control: the same perturbations, and neither zeros nor an empty file."""
    with RealDisk(kind) as disk:
        verdict, _ = shown(disk, replaced(fsync=True), held=True)
    assert verdict.outside == []
    assert contents(verdict) == {OLD, NEW}


@pytest.mark.parametrize("kind", kinds("ext4", "xfs", "btrfs"))
def test_fdatasync_of_a_directory_keeps_its_names(kind: str) -> None:
    """J9: SQLite relies on it. The same trace without it is the negative control."""
    made = create("new", 50), write("new", 50, OLD), (t.Fsync, {"path": "dir/new", "inode": 50})
    named = *made, (t.Rename, {"path": "dir/new", "to": "dir/ck", "inode": 50})
    gone = *named, (t.Fsync, {"path": "dir", "inode": 1}), (t.Unlink, {"path": "dir/ck", "inode": 50})
    barrier = t.Fsync, {"path": "dir", "inode": 1, "data_only": True}
    with RealDisk(kind) as disk:
        for ops, there in ((named, True), (gone, False)):
            late = [_shows(disk, trace_of(*ops, *end), seed) for end in ([barrier], []) for seed in range(4)]
            assert set().union(*late[:4]) == {there}
            assert set().union(*late[4:]) == {True, False}, "without the barrier the name may be as before"


def _shows(disk: RealDisk, trace: t.Trace, seed: int) -> set[bool]:
    """Whether the name is there in images behind the last op."""
    seen = enact(disk, trace, seed=seed, actions=NOTHING)
    verdict = judge(disk, seen, seed=seed, per_moment=8)
    assert verdict.outside == []
    late = {digest for moment, digest in verdict.judged if moment.done == len(trace.ops)}
    return {verdict.trees[digest].node("dir/ck") is not None for digest in late}


@needs("ext4")
def test_an_image_that_the_model_does_not_allow_is_told() -> None:
    """Sabotage: the trace that is judged claims a barrier that the enacted one never had."""
    with RealDisk("ext4") as disk:
        enact(disk, replaced(), seed=1, actions=NOTHING)
        claimed = replaced()
        claimed = t.Trace(
            root=ROOT,
            base=with_bystanders(claimed.base),
            ops=(
                *claimed.ops[:1],
                t.Fsync(n=2, path="dir/tmp1", inode=51),
                t.Rename(n=3, path="dir/tmp1", to="dir/ck", inode=51),
            ),
        )
        outside = judge(disk, claimed, seed=1).outside
    assert outside
    assert outside[0].tree.node("dir") is not None


OPS: tuple[Any, ...] = (
    *(create("a", 10), write("a", 10, b"x" * 5000), (t.Truncate, {"path": "dir/a", "inode": 10, "size": 100})),
    *((t.Link, {"path": "dir/b", "inode": 10}), (t.Unlink, {"path": "dir/a", "inode": 10})),
    *(write("b", 10, b"yy", 50), (t.Chmod, {"path": "dir/b", "inode": 10, "mode": 0o600})),
    *((t.MakeDirectory, {"path": "home/d", "inode": 11}), (t.Rename, {"path": "home/d", "to": "home/e", "inode": 11})),
    *((t.MakeSymlink, {"path": "home/s", "inode": 12, "target": "e"}), (t.Fsync, {"path": "home/e", "inode": 11})),
    *((t.SetAttribute, {"path": "dir/b", "inode": 10, "name": "user.k", "value": b"v"}), (t.Sync, {})),
    *((t.Allocate, {"path": "dir/b", "inode": 10, "size": 9000}), (t.Ack, {"value": 1})),
    (t.Write, {"path": "dir/b", "inode": 10, "offset": 9000, "data": b"z", "sync": "data"}),
    (t.Fsync, {"path": "dir/b", "inode": 10, "data_only": True}),
    *((t.Create, {"path": "", "inode": 13}), (t.Write, {"path": "", "inode": 13, "offset": 0, "data": b"t"})),
    *((t.Link, {"path": "dir/t", "inode": 13}), (t.Unlink, {"path": "dir/b", "inode": 10})),
    *(write("b", 10, b"gone"), (t.MakeDirectory, {"path": "dir/x", "inode": 14})),
    (t.RemoveDirectory, {"path": "dir/x", "inode": 14}),
    (t.MakeSpecial, {"path": "dir/f", "inode": 15, "type": "fifo"}),
    (t.MakeSymlink, {"path": "dir/l", "inode": 16, "target": "t"}),
    *((t.Unlink, {"path": "dir/l", "inode": 16}), (t.Unlink, {"path": "dir/f", "inode": 15})),
    (t.SetTimes, {"path": "dir/t", "inode": 13, "mtime_ns": 5_000_000_000}),
    (t.SetAttribute, {"path": "dir/t", "inode": 13, "name": "user.k", "value": b"v"}),
    (t.SetAttribute, {"path": "dir/t", "inode": 13, "name": "user.k", "value": None}),
)


@needs("ext4")
@pytest.mark.parametrize("keep_open", [True, False])
def test_enacting_ends_in_the_tree_that_the_trace_says(keep_open: bool) -> None:
    """Each kind of op does on disk what it does to the tree."""
    trace = trace_of(*OPS)
    with RealDisk("ext4") as disk:
        seen = enact(disk, trace, seed=1, actions=NOTHING, keep_open=keep_open)
        last = seen.base
        for op in seen.ops:
            last = last.apply(op)
        assert directory.read(disk.path).difference(last) == []


def test_an_actor_needs_no_real_disk(tmp_path: Path) -> None:
    """The same calls on any directory."""
    (tmp_path / "dir").mkdir()
    actor = Actor(tmp_path, base_tree())
    actor.do(t.Create(n=1, path="dir/a", inode=9))
    actor.do(t.Write(n=2, path="dir/a", inode=9, offset=3, data=b"x"))
    assert len(actor.descriptors) == 1
    actor.close()
    assert (tmp_path / "dir" / "a").read_bytes() == b"\0\0\0x"


def test_each_place_in_the_log_belongs_to_a_moment() -> None:
    """Inside of an op it has started, behind it it is done; the base is moment 0."""
    log = DiskLog(1, (Mark(1), Flush(), Mark(2), Mark(3), Flush()))
    assert [when for _, when in moments(log)] == [
        Moment(0, 0),
        Moment(0, 1),
        Moment(0, 1),
        Moment(1, 1),
        Moment(1, 2),
        Moment(1, 2),
    ]


def test_the_pages_of_a_trace_are_all_versions_of_its_blocks() -> None:
    """What the disk knows data writes by: each block as it was after each op, filled up with zeros."""
    trace = trace_of(create("a", 10), write("a", 10, b"x"), write("a", 10, b"y", 4096), write("a", 10, b"z", 1))
    padded = {text.ljust(4096, b"\0") for text in (b"x", b"y", b"xz")}
    assert pages_of(trace) - {bytes(4096)} == padded


def test_bystanders_stand_in_each_directory_but_the_temporary_one() -> None:
    """Their inode numbers are nobody else's."""
    tree = with_bystanders(base_tree())
    paths = [path for path, _, _ in tree.walk() if path.endswith(BYSTANDER)]
    assert paths == [BYSTANDER, f"dir/{BYSTANDER}", f"home/{BYSTANDER}"]
    assert with_bystanders(Tree.empty()).difference(Tree.empty()) != []


def test_perturbations_are_seeded_and_change_no_tree(tmp_path: Path) -> None:
    """The same seed does the same; names, bytes and modes stay."""
    base = with_bystanders(base_tree())
    directory.write(base, tmp_path)
    (tmp_path / "dir" / "a").write_bytes(bytes(range(250)) * 80)
    before = directory.read(tmp_path)
    descriptor = os.open(tmp_path / "dir" / "a", os.O_RDWR)
    actions = ("nothing", "fsync here", "fsync there", "range")  # a sync of the whole machine's disk is slow
    first, second, other = (Perturbation(tmp_path, seed, actions=actions) for seed in (1, 1, 2))
    did = [[each.between([descriptor]) for _ in range(12)] for each in (first, second, other)]
    os.close(descriptor)
    assert did[0] == did[1] != did[2]
    assert set(did[0]) == set(actions)
    assert directory.read(tmp_path).digest == before.digest
