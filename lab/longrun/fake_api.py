"""A strict Messages server without a network: it answers 400 where the real one does.

One core for the sweeps in this process and for HTTP (:mod:`longrun.fake_http`). A reply is a pure
function of transcript, persona and seed; only the ids are fresh at every request, as in life: frozen
ids would hide a ledger that is keyed by them. The server keeps its own record of what was asked and what it
cost, also of answers that never arrived whole. It keeps no conversation: a request brings all of it.
:mod:`longrun.knobs` make it cut a stream, wait, stop for another reason or name a poisonous call. It does
not model rate limits, prices or caching.
"""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from longrun.errors import ApiError, IncompleteResponse, InvalidTranscript
from longrun.knobs import HARMLESS, stopped_with
from longrun.messages import blocks, check_messages, result_text
from longrun.personas import Named, next_turn
from longrun.protocol import NO_USAGE, USAGE_FIELDS
from longrun.stream import cut_off, events_of, snapshot
from longrun.tools import POISON

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from longrun.knobs import Knobs
    from longrun.messages import Block, Message
    from longrun.personas import Persona
    from longrun.stream import Cut

CHARACTERS_PER_TOKEN = 4
THREAD_TEXT = "thread: this server keeps no messages; send the whole conversation"
NO_THREADS = {"error_code": "thread_unsupported_request", "unsupported": ["thread"]}
"""What tells the tool runner of anthropic 2.14 to go on without a thread; read in its lib/threads."""
_REQUIRED = ("model", "max_tokens", "messages")


def random_id(prefix: str) -> str:
    """A fresh id of fixed length: ``toolu_`` and 24 hexadecimal digits, for example."""
    return f"{prefix}_{os.urandom(12).hex()}"


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request as the server saw it: its status, how many messages it had, what it cost, how it was answered.

    ``cut`` says that the answer was paid for and did not arrive whole.
    """

    status: int
    messages: int = 0
    usage: dict[str, int] = field(default_factory=dict)
    error: str = ""
    stop_reason: str = ""
    cut: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """What the server sends: the whole message, and where its stream is to be cut, if anywhere."""

    message: dict[str, Any]
    cut: Cut | None = None


def _nobody() -> None:
    """Nobody counts along."""


@dataclass(eq=False)
class FakeApi:
    """The server. ``exchanges`` is its own record, oldest first; safe to call from several threads.

    ``knobs`` say per turn what goes otherwise. ``asked()`` is called at each request, before it is answered:
    whoever keeps a record that outlives this process counts there.

    >>> from longrun.knobs import Knobs
    >>> api = FakeApi(knobs={1: Knobs(stop_reason="max_tokens")})
    >>> request = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "go"}]}
    >>> api.reply(request)["stop_reason"], api.reply(request)["stop_reason"]
    ('max_tokens', 'tool_use')
    """

    persona: Persona = "careful"
    seed: int = 0
    new_id: Callable[[str], str] = random_id
    exchanges: list[Exchange] = field(default_factory=list)
    knobs: Mapping[int, Knobs] = field(default_factory=dict)
    asked: Callable[[], None] = _nobody
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    _turned: dict[int, int] = field(default_factory=dict, repr=False)
    _hurry: threading.Event = field(default_factory=threading.Event, repr=False)

    def reply(self, request: dict[str, Any]) -> dict[str, Any]:
        """The message that answers ``request``. Raises ApiError with status 400 where the real server does.

        Where a knob cuts the answer: cleanly, it is what a convenient client makes of the beginning, with the
        stop reason None; otherwise IncompleteResponse is raised.
        """
        answer = self.answer(request)
        if answer.cut is None:
            return answer.message
        events = cut_off(events_of(answer.message), answer.cut)
        if not answer.cut.clean:
            text = f"the line broke after {len(list(events))} events"
            raise IncompleteResponse(text)
        return snapshot(events)

    def answer(self, request: Any) -> Answer:
        """The whole message and its cut, for a server that sends events. Raises ApiError like :meth:`reply`."""
        with self._lock:
            self.asked()
            try:
                check_request(request)
            except InvalidTranscript as error:
                self.exchanges.append(Exchange(400, error=str(error)))
                details = NO_THREADS if isinstance(request, dict) and request.get("thread") else None
                raise ApiError(400, "invalid_request_error", str(error), details) from error
            knobs = self._turn_knobs(request["messages"])
            message = self._answer(request, knobs)
            exchange = Exchange(
                status=200,
                messages=len(request["messages"]),
                usage=message["usage"],
                stop_reason=message["stop_reason"],
                cut=knobs.cut is not None,
            )
            self.exchanges.append(exchange)
        if knobs.delay_s:
            self._hurry.wait(knobs.delay_s)
        return Answer(message, knobs.cut)

    def hurry(self) -> None:
        """Send at once what is held back by a delay, now and from now on: the server is to be closed."""
        self._hurry.set()

    def _turn_knobs(self, messages: Sequence[Message]) -> Knobs:
        """The knobs of this turn, unless they have been used up."""
        turn = 1 + sum(message["role"] == "assistant" for message in messages)
        knobs = self.knobs.get(turn, HARMLESS)
        self._turned[turn] = self._turned.get(turn, 0) + 1
        return knobs if knobs.times is None or self._turned[turn] <= knobs.times else HARMLESS

    @property
    def refusals(self) -> list[str]:
        """The texts of all 400 answers."""
        return [each.error for each in self.exchanges if each.status == 400]  # noqa: PLR2004 - the status itself

    def usage(self) -> dict[str, int]:
        """The four counters summed over all replies."""
        return {name: sum(each.usage.get(name, 0) for each in self.exchanges) for name in USAGE_FIELDS}

    def _answer(self, request: dict[str, Any], knobs: Knobs) -> dict[str, Any]:
        messages: Sequence[Message] = request["messages"]
        turn = next_turn(messages, persona=self.persona, seed=self.seed)
        poison = (Named(POISON.name, {"name": "scan.pdf"}),) if knobs.poison else ()
        content: list[Block] = [{"type": "text", "text": turn.text}]
        content += [
            {"type": "tool_use", "id": self.new_id("toolu"), "name": call.name, "input": call.input}
            for call in (*poison, *turn.calls)
        ]
        content, stop = stopped_with(knobs.stop_reason, content, self.new_id)
        return {
            "id": self.new_id("msg"),
            "type": "message",
            "role": "assistant",
            "model": request["model"],
            "content": content,
            **stop,
            "usage": usage_of(messages, content),
        }


def usage_of(messages: Sequence[Message], content: list[Block]) -> dict[str, int]:
    """What the answer ``content`` to ``messages`` costs: a pure function, so that anyone can reckon it again."""
    said = [{"role": "assistant", "content": content}]
    return {**NO_USAGE, "input_tokens": _tokens(messages), "output_tokens": _tokens(said)}


def check_request(request: Any) -> None:
    """Raise InvalidTranscript, with the API's text, for a request that gets 400."""
    if not isinstance(request, dict):
        text = "Input should be a valid dictionary"
        raise InvalidTranscript(text)
    for name in _REQUIRED:
        if name not in request:
            text = f"{name}: Field required"
            raise InvalidTranscript(text)
    if request.get("thread"):
        raise InvalidTranscript(THREAD_TEXT)
    if type(request["max_tokens"]) is not int or request["max_tokens"] < 1:
        text = "max_tokens: Input should be greater than or equal to 1"
        raise InvalidTranscript(text)
    check_messages(request["messages"])
    _check_tools(request.get("tools") or [])
    if not request.get("tools") and any(
        block["type"] != "text" for message in request["messages"] for block in blocks(message)
    ):
        text = "Requests which include `tool_use` or `tool_result` blocks must define tools"
        raise InvalidTranscript(text)


def _check_tools(tools: Any) -> None:
    """Each tool has a name of its own; what else it must have, the client's types say."""
    if not isinstance(tools, list) or not all(isinstance(tool, dict) for tool in tools):
        text = "tools: Input should be a valid list"
        raise InvalidTranscript(text)
    names = [tool.get("name") for tool in tools]
    for number, name in enumerate(names):
        if not isinstance(name, str):
            text = f"tools.{number}.custom.name: Field required"
            raise InvalidTranscript(text)
        if name in names[:number]:
            text = "tools: Tool names must be unique."
            raise InvalidTranscript(text)


def _tokens(messages: Sequence[Message]) -> int:
    """A plain estimate from the length of all texts and inputs: equal transcripts cost the same."""
    return 1 + sum(_length(block) for message in messages for block in blocks(message)) // CHARACTERS_PER_TOKEN


def _length(block: Block) -> int:
    match block["type"]:
        case "text":
            return len(block["text"])
        case "tool_use" | "server_tool_use":
            return len(block["name"]) + len(repr(block["input"]))
        case _:
            return len(result_text(block))
