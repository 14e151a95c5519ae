"""What stays in every state of a trace is summed up once; what may move is walked per state."""

from __future__ import annotations

import pytest
from hypothesis import given

from crashlab import trace as t
from crashlab.crash import shapes
from crashlab.crash.orders import cuts_of
from crashlab.crash.profiles import parse_profile
from crashlab.record.proof import without_rebuilt
from crashlab.tree import Directory, File, Node, Tree
from tests.crashlab.crash.power_traces import PROGRAMS, Program


@pytest.mark.parametrize("profile", ["ext4", "ext4[data=journal]", "btrfs"])
@given(program=PROGRAMS)
def test_the_parts_sum_up_to_the_whole(profile: str, program: Program) -> None:
    """Ground, hooks and slots give the digest of the tree that they stand for, names of all kinds included."""
    cuts = cuts_of(program.trace, parse_profile(profile))
    for moment in program.loss(profile).moments.values():
        for cut in cuts.at(moment, [0, cuts.oldest(moment)]):
            newest = (0,) * len(cut.varied)
            total = cut.fixed + sum(slot.term(0) for slot in cut.varied)
            assert total & shapes.MASK == shapes.digest_of_tree(cut.tree(newest))
            assert {inode for slot in cut.slots for inode in (slot.inode,)} <= cut.shape.named


def test_what_no_op_touches_is_ground() -> None:
    """Untouched files are in the sum; one that is written keeps its paths, one that is renamed hangs from hooks."""
    program = Program(still=10, written=10, moved=10)
    program.write("written", 20).rename("moved", "there")
    ground = cuts_of(program.trace, parse_profile("posix")).ground
    kept = program.base.without("dir/written").without("dir/moved")
    assert ground.digest == shapes.digest_of_tree(kept)
    assert list(ground.paths.values()) == [("dir/written",)]
    assert sorted(hook.path for hook in ground.hooks) == ["dir/moved", "dir/there"]


def test_what_lies_in_a_directory_that_moves_is_no_ground() -> None:
    """A file in a renamed directory moves along, and so does its other name: links are one thing."""
    program = Program()
    program.new(t.MakeDirectory, "d").create("d/a").link("d/a", "b")
    moved = Program()
    moved.base = moved.tree = program.tree
    moved.rename("d", "e")
    ground = cuts_of(moved.trace, parse_profile("posix")).ground
    assert sorted(hook.path for hook in ground.hooks) == ["dir/b", "dir/d", "dir/e"]
    assert moved.inode("b") not in ground.named


NODES: dict[int, Node] = {0: Directory({}), 1: Directory({"x": 2}), 2: File(), 3: Directory({"again": 1})}


def test_hanging_walks_directories_and_sees_loops() -> None:
    """Names below a hook are found, with what was added; a directory below itself is refused."""
    names = shapes.hang([("d", True, 1), ("e", True, 1)], NODES, {1: [("y", 2)]}, ())
    assert names is not None
    assert {inode: sorted(paths) for inode, paths in names[0].items()} == {
        1: ["d", "e"],
        2: ["d/x", "d/y", "e/x", "e/y"],
    }
    assert shapes.hang([("d", True, 1)], NODES, {1: [("loop", 3)]}, ()) is None


@pytest.mark.parametrize("glob", ["lock.mdb", "state/lock.mdb", "*.mdb"])
def test_a_rebuilt_file_is_known_by_its_name_or_its_path(glob: str) -> None:
    """As in the replay proof: what one of them leaves out, the other must not show."""
    tree = Tree({0: Directory({"dir": 1}), 1: Directory({"state": 2}), 2: Directory({"lock.mdb": 3}), 3: File()})
    names = shapes.hang([("dir", True, 1)], tree.nodes, {}, (glob,))
    assert names is not None
    assert 3 not in names[0]
    assert without_rebuilt(tree, (glob,)).node("dir/state/lock.mdb") is None


def test_what_is_hidden_has_a_name_all_the_same() -> None:
    """Below the temporary place and among rebuilt files nothing shows, but rule B4 counts the names."""
    hung = [("tmp", True, 1), ("db-shm", True, 2)]
    names = shapes.hang(hung, {**NODES, 4: File()}, {1: [("z", 4)]}, ("*-shm",))
    assert names is not None
    assert (names[0], names[1]) == ({1: ("tmp",)}, {1, 2, 4})


def test_equal_names_give_equal_sums() -> None:
    """Order of names does not matter to the sum."""
    tree = Tree({0: Directory({"a": 1, "b": 1}), 1: File()})
    other = Tree({0: Directory({"b": 1, "a": 1}), 1: File()})
    assert shapes.digest_of_tree(tree) == shapes.digest_of_tree(other) != shapes.digest_of_tree(tree.without("a"))
