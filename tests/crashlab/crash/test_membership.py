"""Membership without enumeration: what is in, what is just outside, and what cannot be told apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from crashlab import trace as t
from crashlab.crash.membership import contains
from crashlab.crash.moments import Moment
from crashlab.errors import UsageError
from tests.crashlab.crash.power_traces import Program, data

if TYPE_CHECKING:
    from crashlab.tree import Tree

SAVED = Program(ck=10).create("tmp").write("tmp", 9_000).rename("tmp", "ck")
ALL = ("ext4", "ext4[data=journal]", "xfs", "btrfs", "posix")


def holding(content: bytes, **others: int) -> Tree:
    """A disk that holds ``content`` under ``ck``."""
    program = Program(**others).create("ck")
    return program.add(t.Write, path="dir/ck", inode=program.inode("ck"), offset=0, data=content).tree


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (data(10, 1), ALL),
        (data(9_000, 2), ALL),
        (b"", ("xfs", "btrfs", "posix")),
        (bytes(9_000), ("ext4", "btrfs", "posix")),
        (data(9_000, 2)[:4_096], ("ext4", "xfs", "btrfs", "posix")),
        (data(9_000, 2)[:4_097], ()),
        (data(10, 1) + bytes(10), ()),
        (b"\1" * 9_000, ()),
    ],
)
def test_each_profile_knows_its_own(content: bytes, expected: tuple[str, ...]) -> None:
    """The file after a rename without fsync: old, new, and what only some leave."""
    found = tuple(profile for profile in ALL if contains(SAVED.trace, 3, holding(content), profile))
    assert found == expected


def test_a_moment_knows_what_has_begun() -> None:
    """Before an op has begun nothing of it is there; while it is under way all of it may be."""
    tree = SAVED.tree
    assert not contains(SAVED.trace, Moment(2, 2), tree, "ext4")
    assert contains(SAVED.trace, Moment(2, 3), tree, "ext4")


@pytest.mark.parametrize("profile", ALL)
def test_modes_links_kinds_and_strangers_count(profile: str) -> None:
    """The same bytes are not enough: mode, links, kind of node and other names must be right too."""
    trace = Program(ck=10).trace
    right = Program(ck=10)
    assert contains(trace, 0, right.tree, profile)
    assert not contains(trace, 0, Program(ck=10).on(t.Chmod, "ck", mode=0o600).tree, profile)
    assert not contains(trace, 0, Program(ck=10).link("ck", "other").tree, profile)
    assert not contains(trace, 0, Program(ck=10).create("other").tree, profile)
    assert not contains(trace, 0, Program().new(t.MakeDirectory, "ck").tree, profile)
    assert not contains(trace, 0, Program().tree, profile)


def test_two_equal_files_are_not_two_links() -> None:
    """Two names of one file differ from two files of equal content."""
    trace = Program(a=10).link("a", "b").trace
    linked, equal = Program(a=10).link("a", "b").tree, Program(a=10, b=10).tree
    assert contains(trace, 1, linked, "posix")
    assert not contains(trace, 1, equal, "posix")


@pytest.mark.parametrize("profile", ["btrfs", "posix"])
def test_entries_that_no_content_tells_apart_are_tried_in_turn(profile: str) -> None:
    """Several empty files under several names: one way to give them names is enough."""
    program = Program()
    for number in range(6):
        program.create("tmp").rename("tmp", f"f{number % 2}")
    program.create("tmp")
    mixed = Program().create("f0").create("f1").create("tmp").tree
    assert contains(program.trace, len(program.ops), mixed, profile)
    assert not contains(program.trace, len(program.ops), Program().create("f2").tree, profile)


def test_a_directory_may_have_many_entries() -> None:
    """A thousand new names, of which any may be missing: neither depth nor number is a limit."""
    program = Program()
    for number in range(1_200):
        program.create(f"f{number}")
    some = Program()
    for number in range(0, 1_200, 5):
        some.create(f"f{number}")
    assert contains(program.trace, len(program.ops), some.tree, "btrfs")
    assert not contains(program.trace, len(program.ops), some.create("g").tree, "btrfs")


def test_a_durable_file_must_be_somewhere() -> None:
    """B4 holds for membership too: both names gone is no state."""
    trace = Program(a=10).rename("a", "b").trace
    assert not contains(trace, 1, Program().tree, "posix")
    assert contains(trace, 1, Program(b=10).tree, "posix")


def test_an_unknown_profile_is_refused() -> None:
    """As everywhere: the nearest name, and all that there are."""
    with pytest.raises(UsageError, match="did you mean 'posix'"):
        contains(SAVED.trace, 3, SAVED.tree, "posx")
