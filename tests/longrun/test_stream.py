"""Tests of longrun.stream: events out, the message back, and nothing of a stream that was cut."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longrun.errors import IncompleteResponse
from longrun.stream import assemble, events_of

TEXT = st.fixed_dictionaries({"type": st.just("text"), "text": st.text(min_size=1)})
CALL = st.fixed_dictionaries(
    {
        "type": st.just("tool_use"),
        "id": st.text(min_size=1),
        "name": st.text(min_size=1),
        "input": st.dictionaries(st.text(), st.integers() | st.text(), max_size=3),
    }
)


def response(content: list[Any]) -> dict[str, Any]:
    usage = {"input_tokens": 7, "output_tokens": 9, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
    return {"id": "msg_1", "content": content, "stop_reason": "tool_use", "stop_sequence": None, "usage": usage}


@given(st.lists(TEXT | CALL, min_size=1, max_size=4))
def test_a_whole_stream_tells_the_message(content: list[Any]) -> None:
    """Whatever is said arrives as it was said."""
    assert assemble(events_of(response(content))) == response(content)


@given(st.lists(TEXT | CALL, min_size=1, max_size=3), st.data())
def test_no_cut_stream_is_an_answer(content: list[Any], data: st.DataObject) -> None:
    """Cut after any event but the last, a stream gives nothing, also where half an input would parse."""
    events = list(events_of(response(content)))
    kept = data.draw(st.integers(0, len(events) - 1))
    with pytest.raises(IncompleteResponse):
        assemble(events[:kept])


def test_a_ping_says_nothing() -> None:
    """Events that the API sends to keep the line open change no answer."""
    whole = response([{"type": "text", "text": "well"}])
    events = [each for event in events_of(whole) for each in (event, {"type": "ping"})]
    assert assemble(events) == whole


def test_half_an_input_is_refused_even_if_the_stream_goes_on() -> None:
    """A call whose input is no whole JSON makes the answer unusable."""
    call = {"type": "tool_use", "id": "toolu_1", "name": "send_reply", "input": {"refund_yen": 1000, "ticket": "T-102"}}
    events = list(events_of(response([call])))
    last_piece = max(at for at, event in enumerate(events) if event["type"] == "content_block_delta")
    with pytest.raises(IncompleteResponse, match="not whole JSON"):
        assemble(events[:last_piece] + events[last_piece + 1 :])
