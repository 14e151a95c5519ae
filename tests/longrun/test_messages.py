"""Tests of longrun.messages: the canonical form, and every rule by which a list of messages is refused."""

from __future__ import annotations

import copy
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longrun import messages as m
from longrun.errors import InvalidTranscript
from longrun.fake_api import FakeApi
from longrun.personas import PERSONAS

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


def said(*blocks: Any) -> m.Message:
    return {"role": "assistant", "content": list(blocks)}


def heard(*blocks: Any) -> m.Message:
    return {"role": "user", "content": list(blocks)}


def use(identity: str = "toolu_1") -> m.Block:
    return {"type": "tool_use", "id": identity, "name": "read_ticket", "input": {"ticket": "T-101"}}


TEXT: m.Block = {"type": "text", "text": "well"}
DONE = m.tool_result("toolu_1", "done")
ASK = m.user("hello")
PAUSE: m.Block = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}

REFUSED = {
    "empty list": ([], "messages: at least one message is required"),
    "no list": ("hello", "messages: at least one message is required"),
    "first not user": ([said(TEXT), ASK], 'first message must use the "user" role'),
    "no message": ([7], "messages.0: Input should be a valid dictionary"),
    "unknown role": ([{"role": "system", "content": "x"}], "messages.0.role: Input should be 'user' or 'assistant'"),
    "object content": ([{"role": "user", "content": {}}], "messages.0.content: Input should be a valid list"),
    "no content": ([{"role": "user"}], "messages.0.content: Input should be a valid list"),
    "empty content": ([heard()], "messages.0: all messages must have non-empty content"),
    "empty string": ([m.user("")], "messages.0: text content blocks must be non-empty"),
    "empty text block": ([heard({"type": "text", "text": ""})], "messages.0: text content blocks must be non-empty"),
    "blank text": ([m.user("  ")], "text content blocks must contain non-whitespace text"),
    "text without text": ([heard({"type": "text"})], "messages.0.content.0.text.text: Input should be a valid string"),
    "string block": ([heard("x")], "messages.0.content.0: Input should be a valid dictionary"),
    "unknown block": ([heard({"type": "poem"})], "messages.0.content.0: Input tag 'poem' does not match any"),
    "trailing assistant": ([ASK, said(TEXT)], "does not support assistant message prefill"),
    "trailing call": ([ASK, said(use())], "messages.1: `tool_use` ids were found without `tool_result` blocks"),
    "orphan call": ([ASK, said(use()), ASK], "messages.1: `tool_use` ids were found without `tool_result` blocks"),
    "one of two missing": ([ASK, said(use(), use("toolu_2")), heard(DONE)], "immediately after: toolu_2"),
    "result too late": ([ASK, said(use()), ASK, heard(DONE)], "messages.1: `tool_use` ids were found without"),
    "assistant again": ([ASK, said(use()), said(TEXT), ASK], "messages.1: `tool_use` ids were found without"),
    "orphan result": ([ASK, heard(DONE)], "messages.1.content.0: unexpected `tool_use_id` found in `tool_result`"),
    "result twice": ([ASK, said(use()), heard(DONE, DONE)], "messages.2.content.1: each tool_use must have a single"),
    "result after text": ([ASK, said(use()), heard(TEXT, DONE)], "without `tool_result` blocks immediately after"),
    "one result after text": (
        [ASK, said(use(), use("toolu_2")), heard(DONE, TEXT, m.tool_result("toolu_2", "x"))],
        "immediately after: toolu_2",
    ),
    "object result": (
        [ASK, said(use()), heard({**DONE, "content": {"ok": True}})],
        "messages.2.content.0.tool_result.content: Input should be a valid list",
    ),
    "number in result": (
        [ASK, said(use()), heard({**DONE, "content": [7]})],
        "tool_result.content.0: Input should be a valid text block",
    ),
    "empty text in result": (
        [ASK, said(use()), heard({**DONE, "content": [{"type": "text", "text": ""}]})],
        "text content blocks must be non-empty",
    ),
    "result without id": ([heard({"type": "tool_result"})], "tool_use_id: Input should be a valid string"),
    "call without id": ([ASK, said({**use(), "id": 7})], "tool_use.id: Input should be a valid string"),
    "call without name": ([ASK, said({**use(), "name": None})], "tool_use.name: Input should be a valid string"),
    "string input": ([ASK, said({**use(), "input": "{}"})], "tool_use.input: Input should be a valid dictionary"),
    "id used again": (
        [ASK, said(use()), heard(DONE), said(use()), heard(DONE)],
        "messages: `tool_use` ids must be unique",
    ),
    "call by user": ([heard(use())], "messages.0: `tool_use` blocks can only be in `assistant` messages"),
    "server tool by user": ([heard(PAUSE)], "messages.0: `server_tool_use` blocks can only be in `assistant` messages"),
    "server tool without id": ([ASK, said({**PAUSE, "id": 7})], "server_tool_use.id: Input should be a valid string"),
    "text after a pause": ([ASK, said(PAUSE, TEXT)], "does not support assistant message prefill"),
    "a call before a pause": ([ASK, said(use(), PAUSE)], "were found without `tool_result` blocks"),
    "result by assistant": ([ASK, said(DONE)], "messages.1: `tool_result` blocks can only be in `user` messages"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_broken_list_is_refused_with_the_text_of_the_api(case: str) -> None:
    """Each rule refuses the list that breaks it, and says where."""
    broken, text = REFUSED[case]
    with pytest.raises(InvalidTranscript) as caught:
        m.check_messages(broken)
    assert text in str(caught.value)


@pytest.mark.parametrize(
    "sound",
    [
        [ASK],
        [ASK, said(TEXT), ASK],
        [ASK, ASK],
        [ASK, said(TEXT, use()), heard(DONE)],
        [ASK, said(use(), use("toolu_2")), heard(m.tool_result("toolu_2", "x"), DONE, TEXT)],
        [ASK, said(use()), heard({**DONE, "content": [TEXT]})],
        [ASK, said(use()), heard({"type": "tool_result", "tool_use_id": "toolu_1"})],
        [ASK, said(TEXT, PAUSE)],
        [ASK, said(TEXT, PAUSE), said(use()), heard(DONE)],
    ],
)
def test_a_sound_list_passes(sound: list[m.Message]) -> None:
    """What the API takes is taken: results in any order, text after them, no content at all, a pause at the end."""
    m.check_messages(sound)


def test_a_stored_transcript_may_end_with_open_calls() -> None:
    """Between two requests the last message may be the assistant's; a hole before it is still refused."""
    m.check_messages([ASK, said(use())], may_end_with_assistant=True)
    with pytest.raises(InvalidTranscript):
        m.check_messages([ASK, said(use()), ASK, said(TEXT)], may_end_with_assistant=True)


@given(st.sampled_from(PERSONAS), st.integers(0, 5), st.data())
def test_losing_any_one_result_is_noticed(persona: Any, rounds: int, data: st.DataObject) -> None:
    """A valid conversation of any length loses its validity with any single result."""
    transcript = _conversation(persona, rounds + 1)
    m.check_messages(transcript)
    places = [
        (at, index)
        for at, message in enumerate(transcript)
        for index, block in enumerate(m.blocks(message))
        if block["type"] == "tool_result"
    ]
    at, index = data.draw(st.sampled_from(places))
    broken = copy.deepcopy(transcript)
    del broken[at]["content"][index]
    with pytest.raises(InvalidTranscript):
        m.check_messages(broken)


def _conversation(persona: Any, rounds: int) -> list[m.Message]:
    """Rounds of calls of the scripted model, each answered with nothing useful."""
    api = FakeApi(persona)
    transcript = [m.user("go")]
    for _ in range(rounds):
        request = {"model": "x", "max_tokens": 1, "tools": [{"name": "x"}], "messages": transcript}
        message = {"role": "assistant", "content": api.reply(request)["content"]}
        calls = m.tool_uses(message)
        if not calls:
            break
        text = "T-1 Checkout is down\nT-2 Charged twice"
        transcript += [message, heard(*[m.tool_result(call["id"], text) for call in calls])]
    return transcript


@given(JSON)
def test_the_canonical_form_is_strict_json_and_says_the_same(value: Any) -> None:
    """Reading the canonical text gives the value back, and it is ASCII without blanks at its ends."""
    text = m.canonical(value)
    assert m.parse_strict(text) == value
    assert text.isascii()
    assert m.canonical(m.parse_strict(text)) == text


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_what_is_no_json_is_neither_written_nor_read(number: float) -> None:
    """NaN and infinities are refused in both directions."""
    with pytest.raises(ValueError, match="JSON"):
        m.canonical([number])
    with pytest.raises(ValueError, match="is not JSON"):
        m.parse_strict(f"[{'NaN' if math.isnan(number) else 'Infinity' if number > 0 else '-Infinity'}]")


def test_only_blank_texts_are_not_sent_back() -> None:
    """The API refuses them, although it gives them."""
    blanks = [{"type": "text", "text": text} for text in ("", " ", "\n\n")]
    assert m.sendable([*blanks, TEXT, use(), PAUSE]) == [TEXT, use(), PAUSE]


def test_normalised_transcripts_differ_only_where_more_than_ids_differ() -> None:
    """Other ids give the same form; a result that answers another call does not."""
    one = [ASK, said(use("a"), use("b")), heard(m.tool_result("a", "1"), m.tool_result("b", "2"))]
    two = [ASK, said(use("x"), use("y")), heard(m.tool_result("x", "1"), m.tool_result("y", "2"))]
    crossed = [ASK, said(use("x"), use("y")), heard(m.tool_result("y", "1"), m.tool_result("x", "2"))]
    assert m.normalised(one) == m.normalised(two)
    assert m.normalised(one) != m.normalised(crossed)
