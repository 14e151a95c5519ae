"""Tests of longrun.caps: what is spent, when it is enough, and that no crash gives more."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import pytest

from longrun.caps import FIRST_LOST_TOKENS, Caps, spent_tokens
from longrun.checkpoint import correct
from longrun.errors import UsageError
from longrun.messages import user
from longrun.protocol import NO_USAGE, Checkpoint
from tests.longrun.scripted import USAGE, call, says

EACH = sum(USAGE.values())


def state(**fields: Any) -> Checkpoint:
    """A checkpoint before its next request, which is counted already."""
    return Checkpoint(run_id="r", task="t", messages=(user("t"),), **fields)


def test_lost_answers_are_reckoned_with() -> None:
    """All that was sent and not saved cost as much as the latest exchange; the request to come costs nothing yet."""
    used = {"tokens_used": 70, "usage": {**NO_USAGE, "input_tokens": 70}, "context_tokens": 30}
    assert spent_tokens(state(requests_started=3, requests_saved=2, **used)) == 70
    assert spent_tokens(state(requests_started=5, requests_saved=2, **used)) == 70 + 2 * 30
    assert spent_tokens(state(requests_started=3)) == 2 * FIRST_LOST_TOKENS
    assert spent_tokens(state()) == 0


@pytest.mark.parametrize(("turns", "tokens", "reason"), [(2, None, "turn_limit"), (9, 70, "token_limit")])
def test_a_cap_is_reached_at_its_number(turns: int, tokens: int | None, reason: str) -> None:
    """At the number, not before, and whatever the process was opened with."""
    now = state(requests_started=3, requests_saved=2, turns=2, tokens_used=70)
    caps = Caps(turns=turns, tokens=tokens)
    for opened in (None, now, state()):
        end = caps(now, opened)
        assert end is not None
        assert end["reason"] == reason
    assert caps(replace(now, turns=1, tokens_used=69), None) is None


@pytest.mark.parametrize("given", [{"turns": 0}, {"tokens": 0}, {"turns": -1}])
def test_a_cap_below_one_is_refused(given: dict[str, int]) -> None:
    """It says what to pass."""
    with pytest.raises(UsageError, match="pass 1 or more"):
        Caps(**given)


class Died(Exception):  # noqa: N818 - what happens to a process in this test
    """A process ends here."""


class Endless:
    """A model that lists tickets for ever, and counts what it is paid for."""

    def __init__(self) -> None:
        self.numbers = itertools.count()
        self.asked = 0

    def reply(self, _request: dict[str, Any]) -> dict[str, Any]:
        self.asked += 1
        return {"usage": USAGE, **says("tool_use", call("list_tickets", {}, f"toolu_{next(self.numbers)}"))}


def test_a_loop_of_crashes_comes_to_the_cap_on_tokens(desk: Any) -> None:
    """Each process dies with its answer, before it is saved, so that no turn is ever counted: it ends all the same."""
    model = Endless()

    def die(response: dict[str, Any]) -> dict[str, Any]:
        if model.asked > 2:
            raise Died
        return response

    harness = replace(correct.HARNESS, cap=Caps(tokens=10 * EACH), accept=die)
    deaths = 0
    while deaths < 30:
        try:
            last = desk.agent(model, harness=harness).resume()
            break
        except Died:
            deaths += 1
    assert last.end is not None
    assert (last.end["reason"], model.asked, deaths) == ("token_limit", 10, 8)
