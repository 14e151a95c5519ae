"""A strict Messages server without a network: it answers 400 where the real one does.

One core for the sweeps in this process and for HTTP (:mod:`longrun.fake_http`). A reply is a pure
function of transcript, persona and seed; only the ids are fresh at every request, as in life: frozen
ids would hide a ledger that is keyed by them. The server keeps its own record of what was asked.
"""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from longrun.errors import ApiError, InvalidTranscript
from longrun.messages import blocks, check_messages, result_text
from longrun.personas import next_turn
from longrun.protocol import USAGE_FIELDS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from longrun.messages import Block, Message
    from longrun.personas import Persona

CHARACTERS_PER_TOKEN = 4
_REQUIRED = ("model", "max_tokens", "messages")


def random_id(prefix: str) -> str:
    """A fresh id of fixed length: ``toolu_`` and 24 hexadecimal digits, for example."""
    return f"{prefix}_{os.urandom(12).hex()}"


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request as the server saw it: its status, how many messages it had, and what it cost."""

    status: int
    messages: int = 0
    usage: dict[str, int] = field(default_factory=dict)
    error: str = ""


@dataclass(eq=False)
class FakeApi:
    """The server. ``exchanges`` is its own record, oldest first; safe to call from several threads."""

    persona: Persona = "careful"
    seed: int = 0
    new_id: Callable[[str], str] = random_id
    exchanges: list[Exchange] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def reply(self, request: dict[str, Any]) -> dict[str, Any]:
        """The message that answers ``request``. Raises ApiError with status 400 where the real server does."""
        with self._lock:
            try:
                check_request(request)
            except InvalidTranscript as error:
                self.exchanges.append(Exchange(400, error=str(error)))
                raise ApiError(400, "invalid_request_error", str(error)) from error
            response = self._answer(request)
            self.exchanges.append(Exchange(200, len(request["messages"]), response["usage"]))
            return response

    @property
    def refusals(self) -> list[str]:
        """The texts of all 400 answers."""
        return [each.error for each in self.exchanges if each.status == 400]  # noqa: PLR2004 - the status itself

    def usage(self) -> dict[str, int]:
        """The four counters summed over all replies."""
        return {name: sum(each.usage.get(name, 0) for each in self.exchanges) for name in USAGE_FIELDS}

    def _answer(self, request: dict[str, Any]) -> dict[str, Any]:
        messages: Sequence[Message] = request["messages"]
        turn = next_turn(messages, persona=self.persona, seed=self.seed)
        content: list[Block] = [{"type": "text", "text": turn.text}]
        content += [
            {"type": "tool_use", "id": self.new_id("toolu"), "name": call.name, "input": call.input}
            for call in turn.calls
        ]
        usage = {
            "input_tokens": _tokens(messages),
            "output_tokens": _tokens([{"role": "assistant", "content": content}]),
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
        }
        return {
            "id": self.new_id("msg"),
            "type": "message",
            "role": "assistant",
            "model": request["model"],
            "content": content,
            "stop_reason": "tool_use" if turn.calls else "end_turn",
            "stop_sequence": None,
            "usage": usage,
        }


def check_request(request: Any) -> None:
    """Raise InvalidTranscript, with the API's text, for a request that gets 400."""
    if not isinstance(request, dict):
        text = "Input should be a valid dictionary"
        raise InvalidTranscript(text)
    for name in _REQUIRED:
        if name not in request:
            text = f"{name}: Field required"
            raise InvalidTranscript(text)
    check_messages(request["messages"])
    if not request.get("tools") and any(
        block["type"] != "text" for message in request["messages"] for block in blocks(message)
    ):
        text = "Requests which include `tool_use` or `tool_result` blocks must define tools"
        raise InvalidTranscript(text)


def _tokens(messages: Sequence[Message]) -> int:
    """A plain estimate from the length of all texts and inputs: equal transcripts cost the same."""
    return 1 + sum(_length(block) for message in messages for block in blocks(message)) // CHARACTERS_PER_TOKEN


def _length(block: Block) -> int:
    match block["type"]:
        case "text":
            return len(block["text"])
        case "tool_use":
            return len(block["name"]) + len(repr(block["input"]))
        case _:
            return len(result_text(block))
