"""From an id to its state, for every fault, and what no state has."""

from __future__ import annotations

import pytest

from crashlab.crash.ids import state_of
from crashlab.crash.kill import kill_states
from crashlab.crash.losses import Losses
from crashlab.crash.profiles import parse_profiles
from crashlab.errors import UsageError
from tests.crashlab.crash.power_traces import Program

TRACE = Program().create("a").write("a", 5000).rename("a", "b").ack().trace


def test_the_id_of_a_kill_leads_to_its_state() -> None:
    """Whole ops and cut ones."""
    for state in kill_states(TRACE):
        again = state_of(TRACE, state.id)
        assert (again.id, again.fault, again.digest, again.done) == (state.id, "kill", state.digest, state.done)


@pytest.mark.parametrize("profile", ["ext4", "xfs", "btrfs", "posix", "posix,ext4"])
def test_the_id_of_a_power_loss_leads_to_its_state(profile: str) -> None:
    """Read under the profiles that were asked for."""
    states = list(Losses(TRACE, parse_profiles(profile)).states())
    assert len(states) > 5
    for state in states:
        again = state_of(TRACE, state.id, profile=profile)
        assert (again.id, again.fault, again.digest, again.recipe) == (state.id, "power", state.digest, state.recipe)


def test_without_a_profile_the_three_file_systems_are_meant() -> None:
    """A rename of which only the new name came is posix alone; of several profiles the first one's counts."""
    lost = state_of(TRACE, "power@4-3n1", profile="posix")
    assert {name for name in ("a", "b") if lost.tree.lookup(f"dir/{name}")} == {"a", "b"}
    assert state_of(TRACE, "power@4").profile == "ext4"
    assert state_of(TRACE, "power@4", profile="xfs,ext4").profile == "xfs"
    with pytest.raises(UsageError, match="under ext4"):
        state_of(TRACE, "power@4-3n1", profile="ext4,xfs")


def test_what_the_program_rebuilds_is_never_left() -> None:
    """Patterns of paths; without them the file is there."""
    assert state_of(TRACE, "power@4", rebuilt=()).tree.lookup("dir/b")
    assert not state_of(TRACE, "power@4", rebuilt=("b",)).tree.lookup("dir/b")


@pytest.mark.parametrize(
    ("state_id", "words"),
    [
        ("power@5", r"no op 5 in this recording \(4 ops\)"),
        ("power@5-3", r"crashlab replay power@5-3 --run"),
        ("kill@5", r"no op 5 in this recording"),
        ("kill@0+1", r"no op 0 in this recording"),
        ("power@4-9", "no op 9 in this recording"),
        ("power@4-1..999999999999", "no op 999999999999 in this recording"),
        ("power@4-2/kill@1", "a crash during recovery needs its recorded recovery"),
        ("power@4-", "no state id"),
        ("power@4+1", "no state id"),
        ("power@", "no state id"),
        ("kill@3x", "no state id that this version knows; expected kill@7, kill@7.4096, power@9-3 or damage@"),
        ("damage@3", "no damage that this version knows; it knows bit, truncate"),
        ("damage@no-such-file:empty", "is no damage of this recording: there is no such file or place"),
        ("damage@9-a:empty", "no op 9 in this recording"),
        ("kill@1 ", "no state id"),
        ("KILL@1", "no state id"),
    ],
)
def test_what_names_no_state_is_refused(state_id: str, words: str) -> None:
    """With what was expected, and where a stored run would help, with the command."""
    with pytest.raises(UsageError, match=words):
        state_of(TRACE, state_id)
