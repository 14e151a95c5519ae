"""Ids of power states: readable, stable, and followed back to the same tree."""

from __future__ import annotations

import re

import pytest

from crashlab import trace as t
from crashlab.crash.recipes import id_of, recipe_of
from crashlab.errors import UsageError
from tests.crashlab.crash.power_traces import Program, data

SAVED = Program(ck=10).create("tmp").write("tmp", 9_000).rename("tmp", "ck").ack()


def ids(program: Program, profile: str) -> dict[str, bytes | None]:
    """Each id with what the file ``ck`` holds in its state."""
    loss = program.loss(profile)
    found: dict[str, bytes | None] = {}
    for recipe in loss.states():
        node = loss.tree(recipe).node("dir/ck")
        found[id_of(loss, recipe)] = None if node is None else node.content.read()
    return found


@pytest.mark.parametrize(
    ("profile", "state_id", "expected"),
    [
        ("xfs", "power@4", data(9_000, 2)),
        ("xfs", "power@4-2", b""),
        ("xfs", "power@4-all", data(10, 1)),
        ("xfs", "power@4-2s1", data(9_000, 2)[:4_096]),
        ("ext4", "power@4-2d0,2d1,2d2", bytes(9_000)),
        ("ext4", "power@4-2d1", data(9_000, 2)[:4_096] + bytes(4_096) + data(9_000, 2)[8_192:]),
        ("ext4", "power@4-2d0,2s1", bytes(4_096)),
        ("ext4[data=journal]", "power@3-2+4096..", data(10, 1)),
        ("ext4[data=journal]", "power@3-3..", data(10, 1)),
        ("btrfs", "power@4-3n1", data(9_000, 2)),
        ("btrfs", "power@4-3v", None),
        ("btrfs", "power@4-3", data(10, 1)),
        ("btrfs", "power@4-all", data(10, 1)),
    ],
)
def test_an_id_says_what_was_lost(profile: str, state_id: str, expected: bytes | None) -> None:
    """Following the id gives the tree in which exactly that is missing."""
    loss = SAVED.loss(profile)
    node = loss.tree(recipe_of(loss, state_id)).node("dir/ck")
    assert (None if node is None else node.content.read()) == expected


def test_ids_are_unique_and_fit_a_folder_name() -> None:
    """Two states never share an id, and an id holds only letters, digits and @+.,- as folders of findings do."""
    program = Program(ck=9_000).create("tmp").write("tmp", 9_000).rename("tmp", "ck").truncate("ck", 100)
    program.write("ck", 9_000, 4_000).on(t.Chmod, "ck", mode=0o600)
    for profile in ("ext4", "xfs", "btrfs", "posix[sector_bytes=512]"):
        loss = program.loss(profile, bound=200)
        states = {id_of(loss, recipe): recipe.digest for recipe in loss.states()}
        assert len(states) == loss.counts.unique
        assert all(re.fullmatch(r"power@[\w@+.,-]+", each) for each in states)
        for state_id, digest in list(states.items())[:100]:
            assert recipe_of(loss, state_id).digest == digest


def test_an_id_does_not_hang_on_the_bytes() -> None:
    """A program that writes other bytes each time has the same ids."""
    salted = Program(ck=10).create("tmp")
    salted._seed = 99
    salted.write("tmp", 9_000).rename("tmp", "ck").ack()
    assert ids(salted, "ext4").keys() == ids(SAVED, "ext4").keys()


def test_many_lost_ops_are_a_short_text() -> None:
    """What is lost in one piece is written as from..to."""
    program = Program()
    for number in range(8):
        program.create(f"f{number}")
    program.create("last")
    loss = program.loss("posix")
    assert "power@9-1..8" in {id_of(loss, recipe) for recipe in loss.states()}


@pytest.mark.parametrize(
    "state_id",
    ["power@99", "power@4-", "power@4-x", "power@4-2q1", "power@4-4", "kill@4", "power@4-9..", "power@4-2d9", ""],
)
@pytest.mark.parametrize("profile", ["xfs", "btrfs", "ext4[data=journal]"])
def test_an_id_that_leads_nowhere_is_refused(profile: str, state_id: str) -> None:
    """No such op, no such part, nothing lost that could be lost: the error says so."""
    with pytest.raises(UsageError):
        recipe_of(SAVED.loss(profile), state_id)


def test_what_was_forced_cannot_be_lost() -> None:
    """The id of a state without fsync is none of the program with it."""
    loss = Program(ck=10).create("tmp").write("tmp", 9_000).fsync("tmp").rename("tmp", "ck").loss("ext4")
    with pytest.raises(UsageError, match="nearest"):
        recipe_of(loss, "power@4-2d1")
    with pytest.raises(UsageError, match="forced"):
        recipe_of(loss, "power@4-1..")
