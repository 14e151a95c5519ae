"""The one piece of work that all three levels keep: a refund, a report, and back to before the report.

The agent asks, acts and goes back in the same way whatever keeps its session. The model is a function of the
messages, so that a run after a crash asks what the first one would have asked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from longrun.eventlog.repair import NOT_STARTED_TEXT, UNKNOWN_TEXT
from longrun.messages import blocks, result_text, text_of, tool_uses

if TYPE_CHECKING:
    from collections.abc import Callable

    from longrun.messages import Block, Message

REFUND, REPORT, SHORTER = "Refund ticket T-1.", "Write a report.", "Write a short report."
GO_ON = "The process died in the middle of this. Go on."
HEADER: dict[str, Any] = {"model": "m", "system": "", "tools": [], "max_tokens": 100}


class Level(Protocol):
    """What keeps the session. Each method that adds something returns once that is durable."""

    def messages(self) -> list[Message]:
        """The branch that the model sees, whole messages with all their results."""

    def history(self) -> list[Message]:
        """All that was added, on all branches, as it was added."""

    def say(self, text: str) -> None:
        """Something for the model."""

    def asks(self, request: dict[str, Any]) -> None:
        """The model is about to be asked."""

    def answer(self, content: list[Block]) -> None:
        """What it answered."""

    def begin(self, call: Block) -> None:
        """A tool is about to run."""

    def result(self, call: Block, block: Block) -> None:
        """What came of a call."""

    def interrupted(self) -> bool:
        """Whether the last turn was closed by a repair, so that the next thing is to say so."""

    def requests(self) -> list[dict[str, Any]]:
        """The requests that were sent, made again of what is kept."""

    def go_back(self, text: str) -> None:
        """Go on from right before the message that says ``text``; what followed stays in the history."""

    def went_back(self) -> bool:
        """Whether that was done."""


def model(messages: list[Message]) -> list[Block]:
    """The answer: two calls until the refund is settled, then a text."""
    said = [block["text"] for message in messages for block in blocks(message) if block["type"] == "text"]
    for asked, text in ((SHORTER, "A short report."), (REPORT, "A long report.")):
        if asked in said:
            return [{"type": "text", "text": text}]
    settled = [text for call_id, text in results(messages) if is_refund(call_id) and text != NOT_STARTED_TEXT]
    if settled:
        return [{"type": "text", "text": f"The refund: {settled[-1]}"}]
    names = ("look", "refund")
    return [{"type": "tool_use", "id": f"{len(messages)}-{name}", "name": name, "input": {}} for name in names]


def results(messages: list[Message]) -> list[tuple[str, str]]:
    """The id and the text of each result."""
    found = [block for message in messages for block in blocks(message) if block["type"] == "tool_result"]
    return [(block["tool_use_id"], result_text(block)) for block in found]


def is_refund(call_id: str) -> bool:
    """Whether this call is one that must not be repeated blindly."""
    return call_id.endswith("-refund")


def is_unknown(messages: list[Message]) -> bool:
    """Whether a person must be asked what became of the refund."""
    return any(is_refund(call_id) and text == UNKNOWN_TEXT for call_id, text in results(messages))


def joined(entries: list[Message]) -> list[Message]:
    """Entries of one role in a row as one message, as the Messages API wants results."""
    found: list[Message] = []
    for entry in entries:
        if found and found[-1]["role"] == entry["role"] == "user":
            found[-1] = {"role": "user", "content": blocks(found[-1]) + blocks(entry)}
        else:
            found.append(entry)
    return found


def open_calls(messages: list[Message]) -> list[Block]:
    """The calls of the last answer that have no result."""
    answers = [message for message in messages if message["role"] == "assistant"]
    done = {call_id for call_id, _ in results(messages)}
    return [call for call in tool_uses(answers[-1]) if call["id"] not in done] if answers else []


def work(level: Level, refund: Callable[[], str], told: Callable[[str], None]) -> None:
    """Do the work, or what is left of it. ``told`` is called right before a refund, when all before it is durable."""
    unanswered = {call["id"] for call in open_calls(level.messages())}
    while True:
        said = level.messages()
        if calls := open_calls(said):
            _carry_out(level, calls[0], refund, told, left_open=calls[0]["id"] in unanswered)
        elif level.interrupted():
            level.say(GO_ON)
        elif said and said[-1]["role"] == "user":
            level.asks({**HEADER, "messages": said})
            level.answer(model(said))
        elif not _next(level, said):
            return


def _carry_out(
    level: Level, call: Block, refund: Callable[[], str], told: Callable[[str], None], *, left_open: bool
) -> None:
    """Run a tool. Of a call that a dead process has left open nobody knows whether it ran: a refund is not repeated."""
    block = {"type": "tool_result", "tool_use_id": call["id"]}
    if is_refund(call["id"]) and left_open:
        level.result(call, {**block, "content": UNKNOWN_TEXT, "is_error": True})
        return
    if is_refund(call["id"]):
        told(call["id"])
    level.begin(call)
    text = refund() if is_refund(call["id"]) else "T-1: a parcel got lost"
    level.result(call, {**block, "content": text})


def _next(level: Level, said: list[Message]) -> bool:
    """The next step of the plan; False where it is done."""
    texts = "\n".join(text_of(message) for message in said if message["role"] == "user").splitlines()
    if REFUND not in texts:
        level.say(REFUND)
    elif not level.went_back():
        if REPORT in texts:
            level.go_back(REPORT)
        else:
            level.say(REPORT)
    elif SHORTER not in texts:
        level.say(SHORTER)
    else:
        return False
    return True
