"""What a kill may leave: counts, cuts and ids."""

from __future__ import annotations

import pytest

from crashlab import trace as t
from crashlab.crash.ids import state_of
from crashlab.crash.kill import cut_points, kill_states
from crashlab.crash.states import cut
from crashlab.errors import UsageError
from tests.crashlab.traces import ack, call, create, effect, trace_of, write

TRACE = trace_of(
    call({"n": 1}),
    create("a", 10),
    write("a", 10, b"x" * 11),
    ack({"n": 1}),
    call({"n": 2}),
    write("a", 10, b"y" * 20_031, offset=11),
    effect("mail"),
    ack({"n": 2}),
)


def test_there_are_ops_plus_one_plus_cut_states() -> None:
    """The count is the one of the fault model: n + 1 + the 4096 multiples inside writes."""
    assert len(list(kill_states(TRACE))) == len(TRACE.ops) + 1 + 4


@pytest.mark.parametrize(
    ("offset", "length", "expected"),
    [
        (0, 4096, []),
        (0, 4097, [4096]),
        (100, 4096, [3996]),
        (12_000, 16_000, [288, 4384, 8480, 12_576]),
        (4095, 1, []),
        (4095, 2, [1]),
        (4096, 8192, [4096]),
        (7, 0, []),
    ],
)
def test_cuts_are_multiples_of_the_file_offset(offset: int, length: int, expected: list[int]) -> None:
    """A write is cut at 4096 multiples of the file offset strictly inside it, never at those of its own bytes."""
    op = t.Write(n=1, path="dir/a", inode=1, offset=offset, data=bytes(length))
    assert list(cut_points(op)) == expected


def test_cut_at_every_byte_on_request() -> None:
    """The option cut=byte adds every byte strictly inside the write."""
    op = t.Write(n=1, path="dir/a", inode=1, offset=0, data=bytes(5))
    assert list(cut_points(op, at="byte")) == [1, 2, 3, 4]


def test_only_writes_are_cut() -> None:
    """A rename, a truncation and an event are whole or absent."""
    for op in (
        t.Rename(n=1, path="dir/a", to="dir/b", inode=1),
        t.Truncate(n=1, path="dir/a", inode=1, size=10_000),
        t.Ack(n=1),
    ):
        assert list(cut_points(op)) == []


def test_a_cut_leaves_a_prefix_and_no_size_without_data() -> None:
    """Inside op 6 after 4,085 bytes the file has exactly 4,096 bytes, all written."""
    state = state_of(TRACE, "kill@6+4085")
    node = state.tree.node("dir/a")
    assert node is not None
    assert node.content.read() == b"x" * 11 + b"y" * 4085
    assert (state.done, state.cut_bytes, state.last_op) == (5, 4085, 6)


def test_every_id_leads_back_to_its_state() -> None:
    """An id is a recipe: following it gives the state that carried it."""
    for state in kill_states(TRACE):
        again = state_of(TRACE, state.id)
        assert (again.digest, again.done, again.cut_bytes) == (state.digest, state.done, state.cut_bytes)


def test_effects_and_acks_are_those_before_the_crash() -> None:
    """An effect counts from the moment it is done; the digest tells it from the state before it."""
    before, after = state_of(TRACE, "kill@6"), state_of(TRACE, "kill@7")
    assert before.tree.digest == after.tree.digest
    assert ([len(before.effects), len(after.effects)], len(after.acks)) == ([0, 1], 1)
    assert before.digest != after.digest


def test_states_that_differ_only_in_a_call_are_one() -> None:
    """A call that has not touched anything yet leaves the same state as no call."""
    assert state_of(TRACE, "kill@4").digest == state_of(TRACE, "kill@5").digest


@pytest.mark.parametrize(
    "state_id", ["kill@9", "kill@x", "power@99", "power@3x", "kill@0+1", "kill@6+0", "kill@6+99999", "kill@2+1", ""]
)
def test_an_id_of_another_recording_is_refused(state_id: str) -> None:
    """What the recipe asks for is not there: the error says what was expected."""
    with pytest.raises(UsageError):
        state_of(TRACE, state_id)


def test_cut_refuses_what_is_no_write() -> None:
    """Only a write can be cut."""
    with pytest.raises(UsageError, match="cannot be cut"):
        cut(t.Ack(n=1), 1)
