"""Why a power loss broke a promise: the words fit what was lost."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from crashlab import explain_loss
from crashlab.crash.losses import Losses
from crashlab.crash.profiles import parse_profiles
from crashlab.demands import Problem
from crashlab.explain_loss import why_lost
from crashlab.judge import Judgement
from tests.crashlab.crash.power_traces import Program
from tests.crashlab.traces import create, effect, save_point, trace_of, write

if TYPE_CHECKING:
    from crashlab import trace as t

RENAMED = Program(ck=5000).create("t").write("t", 5000).rename("t", "ck").ack().trace
IN_PLACE = Program(ck=5000).write("ck", 5000).ack().trace
EMPTIED = Program(ck=5000).truncate("ck", 0).write("ck", 100).ack().trace
TWICE = Program().create("a").write("a", 9000).write("a", 100, 4096).ack().trace
APPENDED = Program().create("log").write("log", 100).fsync("log").fsync().write("log", 100, 100).ack().trace
MARKED = Program().create("data").write("data", 5000).create("mark").ack().trace
SAVED = trace_of(create("a", 10), write("a", 10, b"A"), save_point("A"), effect("mail"), write("a", 10, b"B"))


def why(trace: t.Trace, state_id: str, *, profile: str = "posix", kind: str = "lost", told: str = "") -> str:
    """The reason for a problem at one state."""
    losses = Losses(trace, parse_profiles(profile))
    state = losses.one(state_id)
    problem = Problem(kind=kind, summary=f"{told} done 2 times, expected 1" if told else "", effect=told)
    return why_lost(Judgement(state=state, verdict="violation", problems=(problem,)), losses.marks(state))


@pytest.mark.parametrize(
    ("trace", "state_id", "told"),
    [
        (RENAMED, "power@4-2", explain_loss._RENAME_BEFORE_BYTES),
        (RENAMED, "power@4-2d0", explain_loss._RENAME_BEFORE_BYTES),
        (RENAMED, "power@4-3", explain_loss._NAME_NOT_SYNCED),
        (RENAMED, "power@4-3v", explain_loss._VANISHED),
        (IN_PLACE, "power@2-1d0", explain_loss._OVERWRITTEN),
        (EMPTIED, "power@3-2", explain_loss._OVERWRITTEN),
        (EMPTIED, "power@3-1s,2", explain_loss._OVERWRITTEN),
        (TWICE, "power@4-3", explain_loss._OVERWRITTEN),
        (TWICE, "power@4-2d0", explain_loss._BYTES_NOT_SYNCED),
        (APPENDED, "power@6-5d0", explain_loss._BYTES_NOT_SYNCED),
        (MARKED, "power@4-2", explain_loss._BYTES_NOT_SYNCED),
        (MARKED, "power@4-1", explain_loss._NAME_NOT_SYNCED),
        (MARKED, "power@4-2..3", explain_loss._BOTH),
    ],
)
def test_the_reason_is_that_of_what_was_lost(trace: t.Trace, state_id: str, told: str) -> None:
    """Bytes behind a rename, a name, bytes of a new file, bytes written over others, names and bytes."""
    assert why(trace, state_id) == told


def test_a_loss_of_nothing_is_a_kill() -> None:
    """Then no barrier would have helped."""
    assert why(RENAMED, "power@4").endswith("a kill here ends the same way.")


@pytest.mark.parametrize("kind", ["duplicate-effect", "missing-effect"])
def test_a_save_point_that_was_told_too_early_is_named(kind: str) -> None:
    """The save point before the effect, its lost op, and the effect that stays done."""
    assert why(SAVED, "power@5-2d0,5", kind=kind, told="mail") == (
        "Save point A (op 3) was told before it was durable: its op 2 was lost, and the effect of op 4 was not. "
        "What is done outside stays done, whatever the disk loses."
    )


@pytest.mark.parametrize(
    ("state_id", "kind", "told"),
    [
        ("power@5-5", "duplicate-effect", "mail"),  # what was lost comes after the effect
        ("power@5-2d0,5", "duplicate-effect", "page"),  # another effect, which never was
        ("power@5-2d0,5", "stuck", "mail"),  # no effect went wrong
    ],
)
def test_a_save_point_is_blamed_for_effects_alone(state_id: str, kind: str, told: str) -> None:
    """And only where an op of its own was lost before one."""
    assert "Save point" not in why(SAVED, state_id, kind=kind, told=told)
