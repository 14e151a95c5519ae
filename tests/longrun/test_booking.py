"""Tests of longrun.booking: what an answer adds, when, and what a loop of crashes makes of booking it late."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from longrun.booking import NO_GAIN, Gain, add, book
from longrun.caps import Caps
from longrun.checkpoint import correct, naive_tokens_after_b
from longrun.messages import user
from longrun.protocol import NO_USAGE, Checkpoint
from longrun.resume import naive_late_turn
from tests.longrun.scripted import USAGE, call, says

if TYPE_CHECKING:
    from longrun.harness import Harness

START = Checkpoint(run_id="r", task="t", messages=(user("t"),), usage={**NO_USAGE, "legacy": 7}, tokens_used=7)
GAIN = Gain(turns=1, requests_saved=1, usage=USAGE)
LIMIT, DEATHS = 3, 8


def test_everything_is_booked_with_the_answer_and_nothing_after_it() -> None:
    """Turn, answer and tokens at A and at E; the sum holds what another protocol has counted."""
    for point in ("A", "E"):
        booked = book(START, GAIN, point)
        assert (booked.turns, booked.requests_saved, booked.tokens_used) == (1, 1, 7 + sum(USAGE.values()))
        assert booked.usage == {**USAGE, "legacy": 7}
    assert book(START, GAIN, "B") == START == add(START, NO_GAIN)


class Died(BaseException):
    """Stands for the end of the process: what is on the disk stays."""


class Endless:
    """A model that names a call for ever."""

    def __init__(self) -> None:
        self.numbers = itertools.count()

    def reply(self, _request: dict[str, Any]) -> dict[str, Any]:
        return {"usage": USAGE, **says("tool_use", call("list_tickets", {}, f"toolu_{next(self.numbers)}"))}


def deaths_until_the_cap(desk: Any, harness: Harness) -> int:
    """How many processes die right after their first answer is saved, until the cap on turns stops the run."""

    def die(place: str, _value: dict[str, int]) -> None:
        if place.endswith(".A"):
            raise Died

    model = Endless()
    for died in range(DEATHS):
        agent = desk.agent(model, harness=replace(harness, cap=Caps(turns=LIMIT)), told=die)
        try:
            last = agent.resume()
        except Died:
            continue
        assert last.end["reason"] == "turn_limit"
        return died
    return DEATHS


@pytest.mark.parametrize(
    ("harness", "deaths"), [(correct.HARNESS, LIMIT), (naive_late_turn.HARNESS, DEATHS)], ids=["correct", "late turn"]
)
def test_a_loop_of_crashes_does_not_slip_the_cap(desk: Any, harness: Harness, deaths: int) -> None:
    """The correct agent is stopped at the limit; one that counts late asks for as long as it is started."""
    assert deaths_until_the_cap(desk, harness) == deaths


def test_tokens_that_are_booked_late_are_lost_with_each_crash(desk: Any) -> None:
    """After three answers that were paid for, the naive one knows of no token."""
    assert deaths_until_the_cap(desk, naive_tokens_after_b.HARNESS) == LIMIT
    saved = correct.load(desk.agent_directory)
    assert saved is not None
    assert (saved.requests_saved, saved.tokens_used) == (LIMIT, 0)
