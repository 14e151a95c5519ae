"""Sources of states: all of one fault as a stream, or one by its id."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from crashlab.crash.kill import kill_states
from crashlab.crash.losses import Losses
from crashlab.crash.profiles import parse_profiles
from crashlab.crash.sources import Kills
from crashlab.errors import UsageError
from tests.crashlab.crash.power_traces import Program

if TYPE_CHECKING:
    from crashlab.crash.sources import Source

TRACE = Program().create("a").write("a", 5000).ack().trace


@pytest.mark.parametrize(
    "source",
    [Kills(TRACE), Kills(TRACE, "byte"), Losses(TRACE, parse_profiles(None))],
    ids=["pages", "bytes", "losses"],
)
def test_each_state_of_the_stream_is_found_by_its_id(source: Source) -> None:
    """And the stream is the same each time."""
    states = list(source.states())
    assert len(states) > 4
    assert [state.id for state in source.states()] == [state.id for state in states]
    assert [source.one(state.id).digest for state in states] == [state.digest for state in states]


def test_kills_are_those_of_the_model() -> None:
    """At page ends, or at every byte."""
    assert [state.id for state in Kills(TRACE).states()] == ["kill@0", "kill@1", "kill@2+4096", "kill@2", "kill@3"]
    assert len(list(Kills(TRACE, "byte").states())) == len(list(kill_states(TRACE, at="byte"))) == 4 + 4999


def test_a_cut_between_page_ends_is_for_bytes_alone() -> None:
    """The error names the option that has it."""
    with pytest.raises(UsageError, match=r"page ends only; for any byte ask for faults='kill\[cut=byte\]'"):
        Kills(TRACE).one("kill@2+100")
    assert Kills(TRACE, "byte").one("kill@2+100").cut_bytes == 100


@pytest.mark.parametrize("state_id", ["power@3-9", "power@9", "nonsense"])
def test_losses_refuse_what_they_do_not_leave(state_id: str) -> None:
    """As kills do."""
    with pytest.raises(UsageError):
        Losses(TRACE, parse_profiles("ext4,posix")).one(state_id)
