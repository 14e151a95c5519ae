"""Calls of several processes that overlap in time, told line by line."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from crashlab.record.strace.decoder import Decoder
from crashlab.record.strace.lines import Lines
from crashlab.record.strace.mirror import Mirror
from crashlab.tree import Tree

if TYPE_CHECKING:
    from crashlab import trace as t

BEFORE = """1 openat(AT_FDCWD<\\x2f>, "\\x61", O_WRONLY|O_CREAT, 0600) = 3
1 fork() = 2
"""
WRITE, FSYNC = '2 write(3, "\\x78", 1', "1 fsync(3"
OPEN_EVENTS = '2 openat(AT_FDCWD, "\\x2f\\x65\\x76\\x65\\x6e\\x74\\x73", O_WRONLY) = 5\n'
ACK = '2 write(5, "\\x61\\x63\\x6b\\x0a", 4) = 4\n'


def decode(text: str) -> tuple[list[t.Op], tuple[str, ...]]:
    """The ops and notes of lines without time stamps, of a program that runs in ``/nowhere``."""
    ops: list[t.Op] = []
    mirror = Mirror("/nowhere", Tree.empty(), {0: 0})
    decoder = Decoder(mirror=mirror, emit=ops.append, directory="/nowhere", umask=0, events_path="/events")
    stamped = "".join(f"{line[:1]} {n}.000000000 {line[2:]}\n" for n, line in enumerate(text.splitlines()))
    for line in Lines().feed(stamped.encode()):
        decoder.take(line)
    decoder.close()
    return ops, tuple(decoder.unseen)


@pytest.mark.parametrize(
    ("text", "kinds", "uncertain"),
    [
        (f"{WRITE}) = 1\n{FSYNC}) = 0\n", ["write", "fsync"], False),
        (f"{FSYNC} <unfinished ...>\n{WRITE}) = 1\n1 <... fsync resumed>) = 0\n", ["write", "fsync"], True),
        (f"{WRITE} <unfinished ...>\n{FSYNC}) = 0\n2 <... write resumed>) = 1\n", ["fsync", "write"], False),
        (f"1 sync( <unfinished ...>\n{WRITE}) = 1\n1 <... sync resumed>) = 0\n", ["write", "sync"], True),
        (
            f'1 write(3, "\\x79", 1 <unfinished ...>\n{WRITE}) = 1\n1 <... write resumed>) = 1\n',
            ["write", "write"],
            True,
        ),
        (
            f"{OPEN_EVENTS}{FSYNC} <unfinished ...>\n{ACK}1 <... fsync resumed>) = 0\n",
            ["ack", "fsync"],
            False,
        ),
    ],
)
def test_an_order_that_is_not_certain_is_noted(text: str, kinds: list[str], uncertain: bool) -> None:
    """Noted where the trace would claim more than is known; not where it claims less, and not for events."""
    ops, notes = decode(BEFORE + text)
    assert [op.KIND for op in ops] == ["create", *kinds]
    assert bool(notes) == uncertain


def test_a_child_that_runs_before_its_maker_knows_it() -> None:
    """Its lines come while the call that makes it is under way; it has the descriptors of its maker."""
    ops, notes = decode(
        f"{BEFORE.splitlines()[0]}\n1 vfork( <unfinished ...>\n{WRITE}) = 1\n1 <... vfork resumed>) = 2\n"
    )
    assert [(op.KIND, op.thread) for op in ops] == [("create", 0), ("write", 1)]
    assert notes == ()


def test_a_process_that_nobody_made_is_noted() -> None:
    """What it does is not told, and the recording is not whole."""
    ops, notes = decode('1 close(3) = 0\n7 mkdir("\\x61", 0700) = 0\n')
    assert ops == []
    assert notes == ("process 7 was started by something that strace did not show",)
