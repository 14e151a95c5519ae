"""What a power loss took, op by op, in words."""

from __future__ import annotations

import pytest

from crashlab import trace as t
from crashlab.crash.losses import Losses
from crashlab.crash.marks import Mark, implied, last_seen, marks_of
from crashlab.crash.profiles import parse_profiles
from crashlab.crash.recipes import Lost
from tests.crashlab.crash.power_traces import Program

WRITE = t.Write(n=3, path="dir/a", inode=7, offset=0, data=bytes(9000))
RENAME = t.Rename(n=4, path="dir/a", inode=7, to="dir/b")
TRUNCATE = t.Truncate(n=5, path="dir/a", inode=7, size=0)
CREATE = t.Create(n=1, path="dir/a", inode=7)
PROGRAM = (
    Program(ck=9000).create("t").write("t", 9000).rename("t", "ck").ack().write("ck", 5000, 4096).truncate("ck", 9)
)


@pytest.mark.parametrize(
    ("mark", "words"),
    [
        (Mark(WRITE, whole=True), "never reached the disk"),
        (Mark(WRITE, parts=("d0", "d1", "d2")), "its size is there, its bytes are not"),
        (Mark(WRITE, parts=("d0", "d1", "d2", "s")), "never reached the disk"),
        (Mark(WRITE, parts=("d1",)), "block 1 never reached the disk"),
        (Mark(WRITE, parts=("d0", "d2")), "blocks 0, 2 never reached the disk"),
        (Mark(WRITE, parts=("s",)), "its size never reached the disk"),
        (Mark(WRITE, parts=("d2", "s2")), "size reached only 8,192 bytes"),
        (Mark(WRITE, parts=("d",)), "cut in the journal"),
        (Mark(WRITE, parts=("o2c7",)), "older bytes are there in part"),
        (Mark(TRUNCATE, parts=("s",)), "its size never reached the disk"),
        (Mark(RENAME, whole=True), "never reached the disk"),
        (Mark(RENAME, parts=("n1",)), "old name is still there"),
        (Mark(RENAME, parts=("n2",)), "new name never reached the disk"),
        (Mark(RENAME, parts=("v",)), "replaced name vanished"),
        (Mark(RENAME, parts=("n1", "v")), "replaced name vanished"),
    ],
)
def test_every_part_of_an_op_has_its_words(mark: Mark, words: str) -> None:
    """Of several parts the one that says most."""
    assert mark.words == words


def test_of_many_blocks_some_are_named() -> None:
    """Three, and that there are more."""
    long = t.Write(n=3, path="dir/a", inode=7, offset=0, data=bytes(9 * 4096))
    words = Mark(long, parts=tuple(f"d{block}" for block in range(8))).words
    assert words == "blocks 0, 1, 2, … never reached the disk"


@pytest.mark.parametrize(
    ("mark", "is_name", "is_bytes"),
    [
        (Mark(WRITE, whole=True), False, True),
        (Mark(TRUNCATE, parts=("s",)), False, True),
        (Mark(RENAME, parts=("n1",)), True, False),
        (Mark(RENAME, parts=("v",)), True, False),
        (Mark(CREATE, whole=True), True, False),
        (Mark(t.Chmod(n=2, path="dir/a", inode=7, mode=0o600), whole=True), False, False),
    ],
)
def test_names_and_bytes_are_told_apart(mark: Mark, is_name: bool, is_bytes: bool) -> None:
    """The reason of a finding depends on it."""
    assert (mark.is_name, mark.is_bytes) == (is_name, is_bytes)


def test_a_lost_chain_takes_names_and_sizes_with_it() -> None:
    """A journal that ends before op 3 holds no later name or set size; writes go their own way."""
    found = marks_of(PROGRAM.trace, Lost(chain=3), 6)
    assert {n: mark.whole for n, mark in found.items()} == {3: True, 6: True}
    assert {*marks_of(PROGRAM.trace, Lost(chain=3), 5)} == {3}  # op 6 was not yet done
    assert {*marks_of(PROGRAM.trace, Lost(chain=3), 6, journals_data=True)} == {3, 5, 6}


def test_a_journal_of_data_is_cut_inside_a_write() -> None:
    """That op is there in part, what follows is gone."""
    found = marks_of(PROGRAM.trace, Lost(chain=2, byte=4096), 6, journals_data=True)
    assert {n: mark.words for n, mark in found.items()} == {
        2: "cut in the journal",
        3: "never reached the disk",
        5: "never reached the disk",
        6: "never reached the disk",
    }


def test_what_is_lost_whole_needs_no_parts() -> None:
    """One mark per op."""
    found = marks_of(PROGRAM.trace, Lost(whole={2}, parts={(2, "d1"), (5, "d2"), (5, "s")}), 6)
    assert [(n, mark.whole, mark.parts) for n, mark in found.items()] == [(2, True, ()), (5, False, ("d2", "s"))]


def test_bytes_from_before_the_first_op_are_no_ops() -> None:
    """A block of the base that a truncation cut has an id, and no op that could be marked."""
    assert marks_of(PROGRAM.trace, Lost(parts={(0, "o0c6"), (5, "d2")}), 6).keys() == {5}


@pytest.mark.parametrize("profile", ["ext4", "ext4[data=journal]", "xfs", "btrfs", "posix"])
def test_every_state_can_be_told(profile: str) -> None:
    """Only ops before the crash, each with words; a state without a mark is the running system's."""
    losses = Losses(PROGRAM.trace, parse_profiles(profile))
    for state in losses.states():
        marks = losses.marks(state)
        assert list(marks) == sorted(marks)
        assert all(n == mark.op.n <= state.done and mark.words for n, mark in marks.items()), state.id
        if state.id == f"power@{state.done}":
            assert marks == {}


def test_where_a_file_was_last_seen() -> None:
    """By its content: the op after which it had it; never, or before the first."""
    program = Program(ck=100).write("ck", 50).truncate("ck", 20)
    trace, inode = program.trace, program.inode("ck")
    contents = [program.base, *(program.base.apply(trace.op(1)).apply(trace.op(n)) for n in (1, 2))]
    seen = [last_seen(trace, inode, tree.nodes[inode].content, 2) for tree in contents]
    assert seen == [0, 1, 2]
    assert last_seen(trace, inode, contents[2].nodes[inode].content, 1) is None


def test_a_write_that_what_was_lost_takes_away_is_marked_too() -> None:
    """A file that shows its state of op 1 has lost the later ones, unless one of them is marked already."""
    program = Program(ck=100).write("ck", 50).write("ck", 60).write("ck", 70)
    trace = program.trace
    tree = program.base.apply(trace.op(1))
    assert {n: mark.words for n, mark in implied(trace, tree, 3, {}).items()} == {
        2: "never reached the disk",
        3: "never reached the disk",
    }
    assert implied(trace, tree, 3, {3: Mark(trace.op(3), whole=True)}) == {}
    assert implied(trace, program.tree, 3, {}) == {}
