"""Tests of longrun.knobs at the server in this process: cuts, delays, stop reasons, poison."""

from __future__ import annotations

import os
import signal
import threading
from typing import Any

import pytest

from longrun.errors import ApiError, IncompleteResponse, UsageError
from longrun.fake_api import FakeApi
from longrun.knobs import Knobs
from longrun.messages import tool_result, user
from longrun.model import STOP_REASONS, require_complete
from longrun.stream import Cut, events_of
from longrun.tools import DEFINITIONS, POISON, TOOLS

GO = {"model": "m", "max_tokens": 9, "tools": DEFINITIONS, "messages": [user("go")]}


def after(response: dict[str, Any], *more: Any) -> dict[str, Any]:
    said = {"role": "assistant", "content": response["content"]}
    return {**GO, "messages": [user("go"), said, *more]}


def test_a_knob_hangs_on_the_turn_and_is_used_up() -> None:
    """The first request of that turn is changed, the second is not; times=None changes all, and no other turn."""
    once, always = (
        FakeApi(knobs={1: Knobs(stop_reason="max_tokens")}),
        FakeApi(knobs={2: Knobs(times=None, poison=True)}),
    )
    assert [once.reply(GO)["stop_reason"] for _ in range(2)] == ["max_tokens", "tool_use"]
    first = always.reply(GO)
    assert [block["name"] for block in first["content"][1:]] == ["list_tickets"]
    following = after(first, {"role": "user", "content": [tool_result(first["content"][1]["id"], "T-1 x")]})
    for _ in range(2):
        assert always.reply(following)["content"][1]["name"] == POISON.name


@pytest.mark.parametrize("reason", STOP_REASONS)
def test_every_stop_reason_can_be_had(reason: str) -> None:
    """The answer has that reason and what belongs to it, and the server has recorded it."""
    api = FakeApi(knobs={1: Knobs(stop_reason=reason)})
    response = api.reply(GO)
    assert response["stop_reason"] == reason
    assert require_complete(response) is response
    kinds = [block["type"] for block in response["content"]]
    assert ("tool_use" in kinds) == (reason == "tool_use")
    assert ("server_tool_use" in kinds) == (reason == "pause_turn")
    assert (kinds == []) == (reason == "refusal")
    assert (response["stop_sequence"] is not None) == (reason == "stop_sequence")
    assert [each.stop_reason for each in api.exchanges] == [reason]


def test_a_paused_turn_goes_on_when_it_is_sent_back_as_it_is() -> None:
    """Only a pause may end with the assistant: the same message without its server tool is refused."""
    api = FakeApi(knobs={1: Knobs(stop_reason="pause_turn")})
    paused = api.reply(GO)
    assert api.reply(after(paused))["stop_reason"] == "tool_use"
    paused["content"].pop()
    with pytest.raises(ApiError, match="prefill"):
        api.reply(after(paused))


@pytest.mark.parametrize("after_events", [0, 1, 3, 5])
def test_a_clean_cut_gives_half_an_answer_and_a_dirty_one_an_error(after_events: int) -> None:
    """Neither is complete; both are paid for, and recorded as cut; the next request is answered whole."""
    for clean in (True, False):
        api = FakeApi(knobs={1: Knobs(cut=Cut(after_events, clean=clean))})
        with pytest.raises(IncompleteResponse):
            require_complete(api.reply(GO))
        assert [(each.cut, each.usage["output_tokens"] > 0) for each in api.exchanges] == [(True, True)]
        assert require_complete(api.reply(GO))["stop_reason"] == "tool_use"
        assert [each.cut for each in api.exchanges] == [True, False]


def test_a_cut_that_finds_no_place_is_told() -> None:
    """A text that is never said cannot be cut behind."""
    api = FakeApi(knobs={1: Knobs(cut=Cut("refund_yen"))})
    with pytest.raises(UsageError, match="never says 'refund_yen'"):
        api.reply(GO)


@pytest.mark.parametrize("wrong", [{"stop_reason": "tired"}, {"delay_s": -1.0}])
def test_a_knob_that_makes_no_sense_is_refused(wrong: dict[str, Any]) -> None:
    """An unknown stop reason and a negative delay."""
    with pytest.raises(UsageError):
        Knobs(**wrong)


def test_a_delayed_answer_is_held_until_the_server_is_told_to_hurry() -> None:
    """The answer is there only after the delay, which closing the server ends; the request is recorded before it."""
    api = FakeApi(knobs={1: Knobs(delay_s=600.0)})
    answers: list[Any] = []
    recorded = threading.Event()
    asking = threading.Thread(target=lambda: answers.append(api.reply(GO)))
    exchanges = api.exchanges

    class Noticed(list[Any]):
        def append(self, item: Any) -> None:
            exchanges.append(item)
            recorded.set()

    api.exchanges = Noticed()
    asking.start()
    assert recorded.wait(60)
    assert answers == []
    api.hurry()
    asking.join(60)
    assert [each["stop_reason"] for each in answers] == ["tool_use"]


def test_the_poison_kills_the_process_that_runs_it() -> None:
    """A child that opens the attachment dies by SIGKILL; no agent has that tool unasked."""
    assert POISON.name not in TOOLS
    child = os.fork()
    if child == 0:
        try:
            POISON.run(None, {}, "")
        finally:
            os._exit(0)
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL


def test_inputs_are_streamed_in_the_order_of_the_model() -> None:
    """A model sorts nothing: the last member that it names is the one that a cut falls into."""
    call = {"type": "tool_use", "id": "t", "name": "n", "input": {"z": 1, "a": 2}}
    said = {"content": [call], "usage": {"output_tokens": 1}, "stop_reason": "tool_use", "stop_sequence": None}
    pieces = [each["delta"]["partial_json"] for each in events_of(said) if each["type"] == "content_block_delta"]
    assert "".join(pieces) == '{"z":1,"a":2}'
