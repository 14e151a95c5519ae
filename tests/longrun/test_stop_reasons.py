"""Tests of longrun.loop: what each stop reason leads to, and that an answer which is not whole leads to nothing."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from longrun.caps import Caps
from longrun.checkpoint import correct
from longrun.errors import IncompleteResponse
from longrun.fake_api import FakeApi
from longrun.knobs import Knobs
from longrun.loop import GAVE_UP_TEXT
from longrun.model import STOP_REASONS
from longrun.tools import POISON, TOOLS
from tests.longrun.scripted import DONE, REPLY, TEXT, Script, call, says

if TYPE_CHECKING:
    from longrun.loop import Agent


@pytest.mark.parametrize("reason", ["max_tokens", "refusal", "model_context_window_exceeded"])
def test_a_stop_that_is_no_end_is_stored_as_stopped(desk: Any, reason: str) -> None:
    """The run stops with the reason, and resuming it asks nothing."""
    last = desk.agent(Script([says(reason)])).start()
    assert (last.status, last.end) == ("stopped", {"reason": reason, "text": "well"})
    assert desk.agent(Script([])).resume() == last


def test_every_stop_reason_of_the_server_ends_as_the_protocol_says(desk: Any) -> None:
    """Met on the third turn: the two ends are done, a pause goes on, the three stops are stopped, and stay so."""
    statuses = {}
    for number, reason in enumerate(STOP_REASONS):
        other = type(desk)(desk.directory / str(number))
        other.agent_directory.mkdir(parents=True)
        api = FakeApi(knobs={3: Knobs(stop_reason=reason)})
        last = other.agent(api).start()
        assert api.refusals == []
        assert last.requests_started == last.requests_saved == len(api.exchanges)
        assert (last.end or {}).get("reason") == (reason if last.turns < 7 else "end_turn")
        assert other.agent(Script([])).resume() == last
        statuses[reason] = (last.status, last.turns, len(other.outside.effects))
    assert statuses == {
        "end_turn": ("done", 3, 0),
        "stop_sequence": ("done", 3, 0),
        "tool_use": ("done", 7, 9),
        "pause_turn": ("done", 8, 9),
        "max_tokens": ("stopped", 3, 0),
        "refusal": ("stopped", 2, 0),  # it says nothing, and nothing is no message
        "model_context_window_exceeded": ("stopped", 3, 0),
    }


def test_an_answer_that_says_nothing_ends_the_run_without_a_message(desk: Any) -> None:
    """An empty end_turn is an end; an empty message would be refused by the server if it were sent back."""
    last = desk.agent(Script([{"stop_reason": "end_turn", "content": []}])).start()
    assert (last.status, last.turns, last.requests_saved, len(last.messages)) == ("done", 0, 1, 1)
    assert last.end == {"reason": "end_turn", "text": ""}


def test_blank_texts_are_not_kept(desk: Any) -> None:
    """The API sends them, and refuses them when they come back."""
    blank = {"type": "text", "text": "\n\n"}
    last = desk.agent(Script([says("tool_use", blank, call("list_tickets", {})), DONE])).start()
    assert [block["type"] for block in last.messages[1]["content"]] == ["tool_use"]


def test_calls_of_an_answer_that_was_cut_short_are_kept_and_never_run(desk: Any) -> None:
    """max_tokens behind a whole call: stopped, the call stands open in the checkpoint, nothing was done."""
    named = call("send_reply", REPLY)
    last = desk.agent(Script([says("max_tokens", TEXT, named)])).start()
    assert (last.status, [each.id for each in last.pending_tool_use]) == ("stopped", ["toolu_1"])
    assert correct.load(desk.agent_directory) == last
    assert desk.agent(Script([])).resume() == last
    assert desk.outside.effects == []


def test_the_cap_on_turns_counts_over_all_processes(desk: Any) -> None:
    """At the limit the run is stopped without a further request, also where a resumed process meets it."""
    api = FakeApi()
    agent = desk.agent(api, harness=replace(correct.HARNESS, cap=Caps(turns=3)))
    last = agent.start()
    assert (last.status, last.turns, last.end["reason"], len(api.exchanges)) == ("stopped", 3, "turn_limit", 3)


def test_a_poisonous_read_is_given_up_after_three_deaths(desk: Any) -> None:
    """Three processes die of it by SIGKILL; the fourth tells the model, and comes to the end."""

    def agent() -> Agent:
        knobs = {6: Knobs(poison=True)}
        return replace(desk.agent(FakeApi(knobs=knobs)), tools={**TOOLS, POISON.name: POISON})

    deaths = []
    for _ in range(3):
        child = os.fork()
        if child == 0:
            try:
                agent().resume()
            finally:
                os._exit(0)
        deaths.append(os.WTERMSIG(os.waitpid(child, 0)[1]))
    assert deaths == [signal.SIGKILL] * 3
    last = agent().resume()
    results = [block for message in last.messages[1:] if message["role"] == "user" for block in message["content"]]
    assert [block["content"] for block in results if block.get("is_error")] == [GAVE_UP_TEXT]
    assert (last.status, last.writer_epoch) == ("done", 4)


def test_a_pause_goes_on_with_the_transcript_as_it_is(desk: Any) -> None:
    """After pause_turn the same transcript is sent again, counted as a request of its own."""
    model = Script([says("pause_turn"), DONE])
    last = desk.agent(model).start()
    assert [len(request["messages"]) for request in model.requests] == [1, 2]
    assert (last.status, last.turns, last.requests_started) == ("done", 2, 2)


@pytest.mark.parametrize(
    "cut",
    [
        says(None),
        says("a new reason"),
        {"stop_reason": "end_turn", "content": None},
        {"stop_reason": "pause_turn", "content": []},
        says("end_turn", {"type": "thinking", "thinking": "well"}),
        says("tool_use"),
        says("end_turn", call("list_tickets", {})),
        says("tool_use", {**call("list_tickets", {}), "input": "{"}),
    ],
)
def test_nothing_of_an_incomplete_answer_is_saved(desk: Any, cut: dict[str, Any]) -> None:
    """The run fails loudly, its files stay as they were, and resume asks again."""
    with pytest.raises(IncompleteResponse):
        desk.agent(Script([cut])).start()
    saved = correct.load(desk.agent_directory)
    assert saved is not None
    assert (saved.turns, saved.requests_started, saved.requests_saved) == (0, 1, 0)
    last = desk.agent(Script([DONE])).resume()
    assert (last.status, last.requests_started, last.requests_saved) == ("done", 2, 1)
