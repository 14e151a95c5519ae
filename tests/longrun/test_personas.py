"""Tests of longrun.personas: what the scripted model says, and where the two personas part."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from longrun.loop import BLOCKED_TEXT, UNKNOWN_TEXT
from longrun.messages import tool_result, tool_uses
from longrun.personas import NOTES_HEADING, PERSONAS, Persona, next_turn

if TYPE_CHECKING:
    from longrun.messages import Message


@pytest.fixture
def transcript(desk: Any) -> list[Message]:
    """The transcript of a whole uncrashed run."""
    return list(desk.agent().start().messages)


def calls_after(messages: list[Message], persona: Persona, seed: int = 0) -> list[tuple[str, str]]:
    turn = next_turn(messages, persona=persona, seed=seed)
    return [(call.name, call.input.get("ticket", "")) for call in turn.calls]


def test_notes_stand_for_acts_that_are_done(transcript: list[Message]) -> None:
    """A new conversation with notes reads everything again, and does only what the notes do not name."""
    notes = "- send_reply T-101: reply sent: send_reply-1\n- write_report : report written"
    first = {"role": "user", "content": f"{transcript[0]['content']}\n\n{NOTES_HEADING}\n{notes}"}
    assert calls_after([first], "careful") == [("list_tickets", "")]
    assert calls_after([first, *transcript[1:9]], "careful") == [("page_oncall", "T-101"), ("send_reply", "T-102")]


def with_result(transcript: list[Message], name: str, text: str) -> list[Message]:
    """The transcript up to the first call of ``name``, whose result is now the error ``text``."""
    at, call = next(
        (at, call) for at, each in enumerate(transcript) for call in tool_uses(each) if call["name"] == name
    )
    results = [
        tool_result(call["id"], text, is_error=True) if block["tool_use_id"] == call["id"] else block
        for block in transcript[at + 1]["content"]
    ]
    return [*transcript[: at + 1], {"role": "user", "content": results}]


def looked_up(messages: list[Message], found: str) -> list[Message]:
    """One more exchange: the look-up that careful asks for, and what it found."""
    call = {"type": "tool_use", "id": "toolu_look", "name": "find_replies", "input": {"ticket": "T-101"}}
    answer = {"role": "user", "content": [tool_result("toolu_look", found)]}
    return [*messages, {"role": "assistant", "content": [call]}, answer]


def sent_text(transcript: list[Message]) -> str:
    calls = [call for each in transcript for call in tool_uses(each) if call["name"] == "send_reply"]
    return str(calls[0]["input"]["text"])


@pytest.mark.parametrize("persona", PERSONAS)
def test_the_script_has_seven_turns_and_parallel_calls(transcript: list[Message], persona: Persona) -> None:
    """List; read all; label all; case; reply, page, reply; report; the end: both personas alike."""
    tickets = ["T-101", "T-102", "T-103", "T-104"]
    turns = [calls_after(transcript[: at + 1], persona) for at in range(0, len(transcript) - 1, 2)]
    assert turns == [
        [("list_tickets", "")],
        [("read_ticket", ticket) for ticket in tickets],
        [("set_label", ticket) for ticket in tickets],
        [("open_case", "T-101")],
        [("send_reply", "T-101"), ("page_oncall", "T-101"), ("send_reply", "T-102")],
        [("write_report", "")],
        [],
    ]


def test_the_refund_is_the_one_in_the_letter(transcript: list[Message]) -> None:
    """T-102 gets 1000 yen back, T-101 nothing."""
    replies = [call["input"] for each in transcript for call in tool_uses(each) if call["name"] == "send_reply"]
    assert [(reply["ticket"], reply["refund_yen"]) for reply in replies] == [("T-101", 0), ("T-102", 1000)]


def test_careful_looks_up_before_sending_again(transcript: list[Message]) -> None:
    """After an unknown reply it looks; found: it goes on; absent: it sends."""
    unknown = with_result(transcript, "send_reply", UNKNOWN_TEXT)
    assert calls_after(unknown, "careful") == [("find_replies", "T-101")]
    found = looked_up(unknown, f"1 replies\nrefund 0 yen: {sent_text(transcript)}")
    assert calls_after(found, "careful") == [("write_report", "")]
    assert calls_after(looked_up(unknown, "0 replies"), "careful") == [("send_reply", "T-101")]


def test_careful_never_pages_twice(transcript: list[Message]) -> None:
    """After an unknown page it goes on without it."""
    assert calls_after(with_result(transcript, "page_oncall", UNKNOWN_TEXT), "careful") == [("write_report", "")]


@pytest.mark.parametrize("name", ["send_reply", "page_oncall"])
def test_hasty_names_the_act_again_at_once(transcript: list[Message], name: str) -> None:
    """After an unknown it neither looks nor waits."""
    assert calls_after(with_result(transcript, name, UNKNOWN_TEXT), "hasty") == [(name, "T-101")]


@pytest.mark.parametrize("persona", PERSONAS)
def test_a_block_ends_it(transcript: list[Message], persona: Persona) -> None:
    """Told that a person must decide, neither persona asks for the act again."""
    assert calls_after(with_result(transcript, "page_oncall", BLOCKED_TEXT), persona) == [("write_report", "")]


def test_a_seed_changes_the_words_only(transcript: list[Message]) -> None:
    """Two seeds name the same acts with other texts; the same seed repeats itself."""
    before_replies = transcript[:9]
    turns = [next_turn(before_replies, persona="careful", seed=seed) for seed in (0, 1, 0)]
    assert turns[0] == turns[2] != turns[1]
    assert [call.name for call in turns[0].calls] == [call.name for call in turns[1].calls]


@pytest.mark.parametrize("persona", PERSONAS)
def test_a_failure_is_tried_again(transcript: list[Message], persona: Persona) -> None:
    """Told that an act has failed, either persona names it again; told so of a refusal it does not."""
    assert calls_after(with_result(transcript, "page_oncall", "failed: no space"), persona) == [
        ("page_oncall", "T-101")
    ]
    refused = with_result(transcript, "page_oncall", "there is no ticket that failed")
    assert calls_after(refused, persona) == [("write_report", "")]
