"""Level 3: a log of facts. What was begun, what was asked, and several views of it; a repair is a fact too.

When a call was not begun it is known, since a tool never runs before its ``tool/call`` is promised; and each request
can be made again, byte for byte, since all that it was made of is there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from longrun.eventlog import project
from longrun.eventlog.events import (
    AssistantMessage,
    ModelCall,
    RequestHeader,
    ToolCall,
    ToolResult,
    TurnEnd,
    TurnStart,
    UserMessage,
)
from longrun.eventlog.levels.work import HEADER, is_refund
from longrun.eventlog.opening import Opening, open_log
from longrun.eventlog.tree import branch
from longrun.messages import tool_uses, user
from longrun.protocol import NO_USAGE

if TYPE_CHECKING:
    from pathlib import Path

    from longrun.eventlog.events import Event
    from longrun.messages import Block, Message

SESSION = "s"


class FactLog:
    """The session below ``directory``; opened, and so repaired, until :meth:`close`."""

    def __init__(self, directory: Path) -> None:
        self.log = open_log(directory, SESSION, Opening(writer="w", clock=lambda: 0))

    def close(self) -> None:
        """Let the next writer in."""
        self.log.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def messages(self) -> list[Message]:
        """The projection for the model."""
        return project.messages(self.log.records)

    def history(self) -> list[Message]:
        """Every surface record as one message."""
        found: list[Message] = []
        for record in self.log.records:
            match record.type:
                case "user/message":
                    found.append(user(record.data["content"]))
                case "assistant/message":
                    found.append({"role": "assistant", "content": record.data["content"]})
                case "tool/result":
                    found.append({"role": "user", "content": [project.result_block(record.data)]})
        return found

    def _promise(self, *events: Event) -> None:
        """Each message is told to somebody, so each is promised: what is durable alone, damage may take for torn."""
        for event in events:
            self.log.append(event)
        self.log.barrier()

    def say(self, text: str) -> None:
        """A turn begins."""
        turn = self.log.grammar.turn + 1
        self._promise(TurnStart(turn=turn), UserMessage(turn=turn, content=text))

    def asks(self, request: dict[str, Any]) -> None:
        """The header, once, and the digest of the whole."""
        grammar = self.log.grammar
        if grammar.header is None:
            named = {name: HEADER[name] for name in ("model", "system", "tools")}
            params = {name: value for name, value in HEADER.items() if name not in named}
            self.log.add(RequestHeader(**named, params=params, reason="initial"))
        assert grammar.header is not None, "it was just written"
        self.log.add(
            ModelCall(
                turn=grammar.turn,
                step=grammar.step + 1,
                attempt=1,
                header_seq=grammar.header,
                request_sha256=project.request_sha256(request),
            )
        )

    def answer(self, content: list[Block]) -> None:
        """A whole answer; without calls it ends the turn."""
        turn, step = self.log.grammar.turn, self.log.grammar.step
        calls = tool_uses({"role": "assistant", "content": content})
        message = AssistantMessage(
            turn=turn,
            step=step,
            message_id="",
            content=content,
            stop_reason="tool_use" if calls else "end_turn",
            usage=dict(NO_USAGE),
        )
        self._promise(message, *([] if calls else [TurnEnd(turn=turn, synthetic=False, reason="completed")]))

    def begin(self, call: Block) -> None:
        """Promised before the tool runs: this is what the other two have not."""
        self._promise(
            ToolCall(
                turn=self.log.grammar.turn,
                step=self.log.grammar.step,
                call_id=call["id"],
                name=call["name"],
                input=call["input"],
                policy="ask" if is_refund(call["id"]) else "read",
            )
        )

    def result(self, call: Block, block: Block) -> None:
        """What the tool gave. What became of calls that a dead process left open, the repair has written."""
        self._promise(
            ToolResult(
                turn=self.log.grammar.turn,
                step=self.log.grammar.step,
                call_id=call["id"],
                content=block["content"],
                is_error=False,
                synthetic=False,
                outcome="done",
                call_seq=self.log.called(call["id"]),
            )
        )

    def interrupted(self) -> bool:
        """Whether a repair has closed the last turn."""
        if self.log.grammar.open:
            return False
        ends = [record.data["reason"] for record in self.log.records if record.type == "turn/end"]
        return bool(ends) and ends[-1] == "interrupted"

    def requests(self) -> list[dict[str, Any]]:
        """One for each ``model/call``."""
        records = self.log.records
        return [project.context(records, record.seq) for record in records if record.type == "model/call"]

    def go_back(self, text: str) -> None:
        """One record."""
        records = self.log.records
        found = next(each for each in records if each.type == "user/message" and each.data["content"] == text)
        branch(self.log, found.parent)

    def went_back(self) -> bool:
        """Whether there is such a record."""
        return any(record.type == "branch/move" for record in self.log.records)
