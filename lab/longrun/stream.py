"""A message as the events of a stream, and back: the fake server sends them, the client puts them together.

:func:`assemble` is strict where convenience would be harmful: an answer counts only when
``message_stop`` came, the stop reason is set and every tool input is whole JSON. :func:`snapshot` is the
convenient way that leads astray: what a client holds when the line is closed too early. It does not
model thinking, citations or the results of server tools.
"""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from longrun.errors import IncompleteResponse, UsageError
from longrun.messages import parse_strict

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from longrun.messages import Block

PIECE_CHARACTERS = 24

Event = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Cut:
    """Where a stream ends too early: right behind the text ``after`` in what is said, or after so many events.

    ``clean``: the line is closed as if all had been said, as a proxy does; otherwise it breaks.
    """

    after: str | int
    clean: bool = True


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
        opening = {**block, "input": {}}
        whole = json.dumps(block["input"], separators=(",", ":"))  # in the order of the model, which sorts nothing
        kind, name = "input_json_delta", "partial_json"
    yield {"type": "content_block_start", "index": index, "content_block": opening}
    for at in range(0, len(whole), PIECE_CHARACTERS):
        delta = {"type": kind, name: whole[at : at + PIECE_CHARACTERS]}
        yield {"type": "content_block_delta", "index": index, "delta": delta}
    yield {"type": "content_block_stop", "index": index}


def cut_off(events: Iterable[Event], cut: Cut) -> Iterator[Event]:
    """The events before the cut; the last one may be shortened. Raises UsageError where there is nothing to cut."""
    if isinstance(cut.after, int):
        yield from itertools.islice(events, cut.after)
        return
    said = ""
    for event in events:
        if event["type"] == "content_block_start":
            said = ""
        if event["type"] == "message_stop":
            break
        if event["type"] != "content_block_delta":
            yield event
            continue
        name = "text" if event["delta"]["type"] == "text_delta" else "partial_json"
        before, said = len(said), said + event["delta"][name]
        if cut.after in said:
            end = said.index(cut.after) + len(cut.after)
            yield {**event, "delta": {**event["delta"], name: said[before:end]}}
            return
        yield event
    text = f"the stream never says {cut.after!r}: there is no such place to cut it at"
    raise UsageError(text)


def assemble(events: Iterable[Event]) -> dict[str, Any]:
    """The message that the events tell. Raises IncompleteResponse unless all of it came."""
    response, texts, stopped = _gather(events)
    if not stopped:
        text = "the stream ended before message_stop: nothing of it may be used"
        raise IncompleteResponse(text)
    for block, whole in zip(response["content"], texts, strict=True):
        if block["type"] == "text":
            block["text"] = whole
            continue
        try:
            block["input"] = parse_strict(whole or "{}")
        except ValueError as error:
            text = f"the input of call {block['id']} is not whole JSON: {whole!r:.60}"
            raise IncompleteResponse(text) from error
    return response


def snapshot(events: Iterable[Event]) -> dict[str, Any]:
    """What a convenient client holds when the events end, wherever they end: it may be half an answer.

    Its stop reason is None before ``message_delta``, and of half an input it shows what can be read.
    """
    response, texts, _ = _gather(events)
    for block, whole in zip(response.get("content", ()), texts, strict=True):
        if block["type"] == "text":
            block["text"] = whole
        else:
            block["input"] = _read_half(whole)
    return response


def _gather(events: Iterable[Event]) -> tuple[dict[str, Any], list[str], bool]:
    """The message as far as it came, the text of each of its blocks, and whether ``message_stop`` came."""
    response: dict[str, Any] = {}
    texts: list[str] = []
    for event in events:
        match event["type"]:
            case "message_start":
                response = dict(event["message"])
                response["content"], response["usage"] = [], dict(response["usage"])
            case "content_block_start":
                response["content"].append(dict(event["content_block"]))
                texts.append("")
            case "content_block_delta":
                delta = event["delta"]
                texts[-1] += delta["text"] if delta["type"] == "text_delta" else delta["partial_json"]
            case "message_delta":
                response.update(event["delta"])
                response["usage"].update({name: count for name, count in event["usage"].items() if count is not None})
            case "message_stop":
                return response, texts, True
    return response, texts, False


def _read_half(whole: str) -> dict[str, Any]:
    """The members of a flat JSON object that can be read of its beginning; half a number is a number, too."""
    for end in range(len(whole), 0, -1):
        for closing in ("", "}"):
            try:
                found = json.loads(whole[:end] + closing)
            except ValueError:
                continue
            return dict(found)
    return {}
