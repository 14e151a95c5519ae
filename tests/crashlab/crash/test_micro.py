"""One op becomes micro-ops, and a trace the chain, events, entries and barriers of them."""

from __future__ import annotations

from typing import Any

import pytest

from crashlab import trace as t
from crashlab.crash.micro import Attribute, Block, Growth, History, Name, Size, micro_ops
from tests.crashlab.crash.power_traces import Program

BEFORE = Program(a=5_000, b=100).tree
A, B = BEFORE.lookup("dir/a"), BEFORE.lookup("dir/b")
ON_A: dict[str, Any] = {"n": 1, "path": "dir/a", "inode": A}


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        (t.Write(**ON_A, offset=4_000, data=bytes(200)), [Block(1, A, 0), Block(1, A, 1)]),
        (t.Write(**ON_A, offset=5_000, data=bytes(1)), [Block(1, A, 1), Growth(1, A, 5_000, 5_001)]),
        (t.Write(**ON_A, offset=9_000, data=bytes(1)), [Block(1, A, 2), Growth(1, A, 5_000, 9_001)]),
        (t.Write(**ON_A, offset=9_000, data=b""), []),
        (t.Truncate(**ON_A, size=0), [Size(1, A, 5_000, 0)]),
        (t.Truncate(**ON_A, size=4_096), [Size(1, A, 5_000, 4_096)]),
        (t.Truncate(**ON_A, size=4_097), [Size(1, A, 5_000, 4_097), Block(1, A, 1)]),
        (t.Truncate(**ON_A, size=6_000), [Size(1, A, 5_000, 6_000)]),
        (t.Allocate(**ON_A, size=6_000), [Size(1, A, 5_000, 6_000)]),
        (t.Allocate(**ON_A, size=100), []),
        (t.Rename(**ON_A, to="dir/c"), [Name(1, (1, "c"), A), Name(1, (1, "a"), None)]),
        (t.Rename(**ON_A, to="dir/b"), [Name(1, (1, "b"), A, B), Name(1, (1, "a"), None)]),
        (t.Rename(**ON_A, to="dir/a"), []),
        (t.Unlink(**ON_A), [Name(1, (1, "a"), None)]),
        (t.Link(n=1, path="home/a", inode=A), [Name(1, (2, "a"), A)]),
        (t.Create(n=1, path="dir/n", inode=9), [Name(1, (1, "n"), 9)]),
        (t.Create(n=1, path="", inode=9), []),
        (t.MakeDirectory(n=1, path="dir/d", inode=9), [Name(1, (1, "d"), 9)]),
        (t.MakeSymlink(n=1, path="dir/s", inode=9, target="a"), [Name(1, (1, "s"), 9)]),
        (t.Chmod(**ON_A, mode=0o600), [Attribute(1, A)]),
        (t.SetAttribute(**ON_A, name="user.x", value=b"1"), [Attribute(1, A)]),
        (t.SetTimes(**ON_A, mtime_ns=5), []),
        (t.Fsync(**ON_A), []),
        (t.Ack(n=1), []),
    ],
)
def test_an_op_becomes_these_micro_ops(op: t.Op, expected: list[object]) -> None:
    """N, Z, S, D and A of each op, in the order in which they are done."""
    assert list(micro_ops(op, BEFORE)) == expected


def test_a_rename_of_one_inode_changes_nothing() -> None:
    """Two names of one file: renaming one onto the other does nothing at all, so both stay."""
    program = Program().create("a").link("a", "b")
    program.ops.append(t.Rename(n=3, path="dir/a", to="dir/b", inode=program.inode("a")))
    history = History.of(program.trace)
    assert len(history.chain) == 2
    assert history.running[-1] is history.running[-2]


def test_barriers_know_their_reach() -> None:
    """Files, directories, everything; and writes that are their own barrier."""
    program = Program(a=10).fsync("a").fsync("a", data_only=True).fsync().write("a", 1, sync="data").add(t.Sync)
    barriers = History.of(program.trace).barriers
    assert [(each.inode, each.data_only, each.directory) for each in barriers.values()] == [
        (100, False, False),
        (100, True, False),
        (1, False, True),
        (100, True, False),
        (None, False, False),
    ]
    assert list(barriers) == [1, 2, 3, 4, 5]


def test_the_chain_holds_names_sizes_and_modes_only() -> None:
    """Writes are no links of the chain; each knows how many came before it."""
    program = Program(a=10).create("b").write("b", 10).truncate("a", 5).on(t.Chmod, "a", mode=0o600).write("a", 1)
    history = History.of(program.trace)
    assert [link.op for link in history.chain] == [1, 3, 4]
    assert history.issued == [0, 1, 1, 2, 3, 3]
    assert [(event.op, event.before, event.position) for event in history.events[100]] == [(3, 1, 2), (5, 3, 3)]
    assert history.trees[-1].node("dir/a").mode == 0o600
