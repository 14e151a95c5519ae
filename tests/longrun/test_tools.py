"""Tests of longrun.tools: natures found by experiment, inputs, act keys."""

from __future__ import annotations

from typing import Any

import pytest

from longrun.errors import InvalidInput
from longrun.tools import DEFINITIONS, TOOLS, act_key, args_digest

INPUTS: dict[str, dict[str, Any]] = {
    "list_tickets": {},
    "read_ticket": {"ticket": "T-101"},
    "find_replies": {"ticket": "T-101"},
    "set_label": {"ticket": "T-101", "label": "outage"},
    "write_report": {"text": "all well"},
    "open_case": {"ticket": "T-101", "title": "down"},
    "send_reply": {"ticket": "T-102", "text": "sorry", "refund_yen": 1000},
    "page_oncall": {"ticket": "T-101", "summary": "down"},
}


@pytest.mark.parametrize("name", TOOLS)
def test_the_nature_is_what_two_calls_show(desk: Any, name: str) -> None:
    """Called twice: a read leaves no trace, an idempotent tool one effect, the others two."""
    world, tool = desk.world, TOOLS[name]
    results = [tool.run(world, INPUTS[name], "key") for _ in range(2)]
    counted = sum(each.counted for each in world.outside.records())
    assert counted == {"read-only": 0, "idempotent": 1, "non-idempotent": 2}[tool.nature]
    assert (results[0] == results[1]) == (tool.nature != "non-idempotent")


def test_a_look_up_finds_exactly_what_was_done(desk: Any) -> None:
    """send_reply is found after it was done, with this text and refund and no other; page_oncall has none."""
    world, tool, done = desk.world, TOOLS["send_reply"], INPUTS["send_reply"]
    assert tool.find is not None
    assert tool.find(world, done) is None
    tool.run(world, done, "key")
    assert tool.find(world, done) is not None
    assert tool.find(world, {**done, "refund_yen": 10}) is None
    assert TOOLS["page_oncall"].find is None


@pytest.mark.parametrize("name", TOOLS)
def test_an_input_that_does_not_fit_is_refused(desk: Any, name: str) -> None:
    """Missing, surplus and mistyped fields are refused; the fitting input passes."""
    tool, fitting = TOOLS[name], INPUTS[name]
    tool.check(desk.world, fitting)
    broken = [{**fitting, "more": 1}, *({**fitting, field: None} for field in fitting)]
    broken += [{other: fitting[other] for other in fitting if other != field} for field in fitting]
    for each in broken:
        with pytest.raises(InvalidInput):
            tool.check(desk.world, each)


def test_a_boolean_is_no_amount_and_a_stranger_no_ticket(desk: Any) -> None:
    """True is not 1 yen, and a ticket that does not exist gets no reply."""
    for change in ({"refund_yen": True}, {"ticket": "T-999"}):
        with pytest.raises(InvalidInput):
            TOOLS["send_reply"].check(desk.world, {**INPUTS["send_reply"], **change})


def test_an_act_key_names_run_ticket_and_act_only() -> None:
    """Another text is the same act; another ticket, tool or run is another; a read is no act."""
    reply, given = TOOLS["send_reply"], INPUTS["send_reply"]
    key = act_key("run-1", reply, {"input": given})
    assert key == act_key("run-1", reply, {"input": {**given, "text": "other"}}) == "run-1/T-102/send_reply"
    others = {
        act_key("run-2", reply, {"input": given}),
        act_key("run-1", reply, {"input": {**given, "ticket": "T-101"}}),
        act_key("run-1", TOOLS["page_oncall"], {"input": given}),
    }
    assert len(others | {key}) == 4
    assert act_key("run-1", TOOLS["read_ticket"], {"input": given}) is None


def test_the_digest_tells_inputs_apart_and_not_their_order() -> None:
    """The order of the fields does not matter, a value does."""
    assert args_digest({"a": 1, "b": 2}) == args_digest({"b": 2, "a": 1})
    assert args_digest({"a": 1}) != args_digest({"a": 2})


def test_definitions_are_those_of_the_api() -> None:
    """Each tool has a name, a description and an object schema that requires every field."""
    assert [each["name"] for each in DEFINITIONS] == list(TOOLS)
    for each in DEFINITIONS:
        schema = each["input_schema"]
        assert schema["type"] == "object"
        assert schema["required"] == list(schema["properties"]) == list(TOOLS[each["name"]].fields)
