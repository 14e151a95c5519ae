"""What the tests of the event log share: sessions in a folder, and turns written record by record."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from longrun.eventlog.events import (
    AssistantMessage,
    ModelCall,
    Note,
    RequestHeader,
    ToolCall,
    ToolResult,
    TurnEnd,
    TurnStart,
    UserMessage,
)
from longrun.eventlog.opening import Opening, open_log
from longrun.eventlog.project import context, request_sha256
from longrun.eventlog.segments import MARK_NAME, segment_path, session_directory

if TYPE_CHECKING:
    from pathlib import Path

    from longrun.eventlog.events import Policy
    from longrun.eventlog.log import EventLog

NAME = "s"


def opened(root: Path, **how: Any) -> EventLog:
    """The session, open; its times are all 0."""
    return open_log(root, NAME, Opening(**{"writer": "w", "clock": lambda: 0, **how}))


def directory(root: Path) -> Path:
    return session_directory(root, NAME)


def segment(root: Path, number: int = 0) -> Path:
    return segment_path(directory(root), number)


def mark(root: Path) -> Path:
    return directory(root) / MARK_NAME


def files(root: Path) -> dict[str, bytes]:
    """Every file of the session."""
    return {path.name: path.read_bytes() for path in directory(root).iterdir()}


def noted(root: Path, *numbers: int) -> list[bytes]:
    """A closed session with these notes, each promised; its lines."""
    with opened(root) as log:
        for number in numbers:
            log.append(Note(note={"n": number}))
            log.barrier()
    return segment(root).read_bytes().splitlines(keepends=True)


def numbers_of(log: EventLog) -> list[int]:
    return [record.data["n"] for record in log.records if record.type == "note"]


def begin(log: EventLog, text: str = "go") -> int:
    """Start a turn and say something; the number of the turn."""
    turn = log.grammar.turn + 1
    if log.grammar.header is None:
        log.add(RequestHeader(model="m", system="", tools=[], params={"max_tokens": 9}, reason="initial"))
    log.add(TurnStart(turn=turn), UserMessage(turn=turn, content=text))
    return turn


def answer(log: EventLog, *call_ids: str, text: str = "hm") -> None:
    """The model answers with calls to ``pay``, or with a text alone."""
    turn, step, header = log.grammar.turn, log.grammar.step + 1, log.grammar.header
    assert header is not None
    sha = request_sha256(context(log.records))
    log.add(ModelCall(turn=turn, step=step, attempt=1, header_seq=header, request_sha256=sha))
    content: list[Any] = [{"type": "text", "text": text}]
    content += [{"type": "tool_use", "id": each, "name": "pay", "input": {"to": each}} for each in call_ids]
    stop = "tool_use" if call_ids else "end_turn"
    log.add(AssistantMessage(turn=turn, step=step, message_id=f"m{step}", content=content, stop_reason=stop, usage={}))


def call(log: EventLog, call_id: str, *, policy: Policy = "ask", key: str | None = None, promise: bool = True) -> None:
    """``tool/call``, and the promise that it needs."""
    pending = log.grammar.pending[call_id]
    log.add(
        ToolCall(
            turn=log.grammar.turn,
            step=pending.step,
            call_id=call_id,
            name="pay",
            input=pending.input,
            policy=policy,
            key=key,
        )
    )
    if promise:
        log.barrier()


def result(log: EventLog, call_id: str, text: str = "paid", **fields: Any) -> None:
    """The result of a call."""
    pending = log.grammar.pending[call_id]
    form = {"content": text, "is_error": False, "synthetic": False, "outcome": "done", "call_seq": pending.called}
    log.add(ToolResult(turn=log.grammar.turn, step=pending.step, call_id=call_id, **{**form, **fields}))


def end(log: EventLog) -> None:
    """``turn/end``, promised."""
    log.add(TurnEnd(turn=log.grammar.turn, synthetic=False, reason="completed"))
    log.barrier()


def whole_turn(log: EventLog, call_id: str, text: str = "go") -> None:
    """A turn with one call and its result."""
    begin(log, text)
    answer(log, call_id)
    call(log, call_id)
    result(log, call_id)
    answer(log, text="done")
    end(log)
