"""The order in which a path picks its crashes: the latest first, with few losses, but some where there can be any."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from crashlab import trace as t
from crashlab.crash.kill import kill_states
from crashlab.crash.losses import Losses
from crashlab.crash.picks import fewest_first, latest_first, lost_count, picked
from crashlab.crash.profiles import parse_profiles
from tests.crashlab.traces import ack, call, create, trace_of, write

FSYNC = (t.Fsync, {"path": "dir/a", "inode": 4})
SYNC: tuple[type[t.Op], dict[str, Any]] = (t.Sync, {})
SAVED = trace_of(call(1), create("a", 4), write("a", 4, b"x" * 5000), FSYNC, SYNC, ack(1))
FSYNC_OF_B = (t.Fsync, {"path": "dir/b", "inode": 5})
ALIKE = trace_of(call(1), create("a", 4), write("a", 4, b"x" * 50), create("b", 5), FSYNC_OF_B, ack(1))
"""Before and after the fsync power leaves much the same: such states are one."""
UNSYNCED = trace_of(call(1), create("a", 4), write("a", 4, b"x" * 5000), ack(1))


def losses(trace: t.Trace, profiles: str = "ext4,xfs,btrfs") -> Losses:
    """Power losses of a trace."""
    return Losses(trace, parse_profiles(profiles), bound=8)


def test_number_0_of_kills_is_the_end_and_each_state_comes_once() -> None:
    """Backwards along the ops; states that cannot be told apart are one."""
    states = latest_first(kill_states(SAVED))
    assert states[0].id == "kill@6"
    assert len({state.digest for state in states}) == len(states)
    assert {state.digest for state in states} == {state.digest for state in kill_states(SAVED)}
    assert [state.last_op for state in states] == sorted((state.last_op for state in states), reverse=True)


def test_number_0_of_power_losses_is_the_latest_that_lost_something() -> None:
    """Right behind the ack where nothing was forced; before the last barrier where all was."""
    first = next(fewest_first(losses(UNSYNCED)))
    assert (first.id, lost_count(first)) == ("power@4-3", 1)
    assert next(fewest_first(losses(SAVED))).done < 5


@pytest.mark.parametrize("trace", [SAVED, UNSYNCED, ALIKE])
def test_every_power_loss_can_be_picked_once(trace: t.Trace) -> None:
    """All states of the model within the bound, none twice, those without a loss at the end."""
    named = list(fewest_first(losses(trace)))
    states = [each.make() for each in named]
    assert [state.id for state in states] == [each.id for each in named]
    assert len({state.digest for state in states}) == len(states)
    assert {state.digest for state in states} == {state.digest for state in losses(trace).states()}
    lossless = [lost_count(each) == 0 for each in named]
    assert lossless == sorted(lossless)
    with_losses = [each for each in named if lost_count(each)]
    assert with_losses == sorted(with_losses, key=lambda each: (-each.done, lost_count(each)))


def test_a_number_beyond_the_last_begins_again() -> None:
    """Modulo how many there are, and no more is looked at than that takes."""
    endless = itertools.count()
    assert picked(endless, 3) == 3
    assert next(endless) == 4
    assert [picked("abc", number) for number in range(5)] == ["a", "b", "c", "a", "b"]
