"""A message as the events of a stream, and back: the fake server sends them, the client puts them together.

:func:`assemble` is strict where convenience would be harmful: an answer counts only when
``message_stop`` came, the stop reason is set and every tool input is whole JSON. It does not model
thinking, citations or server tools.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from longrun.errors import IncompleteResponse
from longrun.messages import canonical, parse_strict

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from longrun.messages import Block

PIECE_CHARACTERS = 24

Event = dict[str, Any]


def events_of(response: dict[str, Any]) -> Iterator[Event]:
    """The events by which the API streams ``response``, texts and inputs in small pieces."""
    usage = {**response["usage"], "output_tokens": 1}
    opening = {**response, "content": [], "stop_reason": None, "stop_sequence": None, "usage": usage}
    yield {"type": "message_start", "message": opening}
    for index, block in enumerate(response["content"]):
        yield from _block_events(index, block)
    delta = {"stop_reason": response["stop_reason"], "stop_sequence": response["stop_sequence"]}
    last_usage = {"output_tokens": response["usage"]["output_tokens"]}
    yield {"type": "message_delta", "delta": delta, "usage": last_usage}
    yield {"type": "message_stop"}


def _block_events(index: int, block: Block) -> Iterator[Event]:
    if block["type"] == "text":
        opening, whole, kind, name = {**block, "text": ""}, block["text"], "text_delta", "text"
    else:
        opening, whole = {**block, "input": {}}, canonical(block["input"])
        kind, name = "input_json_delta", "partial_json"
    yield {"type": "content_block_start", "index": index, "content_block": opening}
    for at in range(0, len(whole), PIECE_CHARACTERS):
        delta = {"type": kind, name: whole[at : at + PIECE_CHARACTERS]}
        yield {"type": "content_block_delta", "index": index, "delta": delta}
    yield {"type": "content_block_stop", "index": index}


def assemble(events: Iterable[Event]) -> dict[str, Any]:
    """The message that the events tell. Raises IncompleteResponse unless all of it came."""
    response: dict[str, Any] = {}
    pieces: list[str] = []
    for event in events:
        match event["type"]:
            case "message_start":
                response = dict(event["message"])
                response["content"], response["usage"] = [], dict(response["usage"])
            case "content_block_start":
                response["content"].append(dict(event["content_block"]))
                pieces = []
            case "content_block_delta":
                delta = event["delta"]
                pieces.append(delta["text"] if delta["type"] == "text_delta" else delta["partial_json"])
            case "content_block_stop":
                _close(response["content"][-1], "".join(pieces))
            case "message_delta":
                response.update(event["delta"])
                response["usage"].update({name: count for name, count in event["usage"].items() if count is not None})
            case "message_stop":
                return response
    text = "the stream ended before message_stop: nothing of it may be used"
    raise IncompleteResponse(text)


def _close(block: Block, whole: str) -> None:
    if block["type"] == "text":
        block["text"] = whole
        return
    try:
        block["input"] = parse_strict(whole or "{}")
    except ValueError as error:
        text = f"the input of call {block['id']} is not whole JSON: {whole!r:.60}"
        raise IncompleteResponse(text) from error
