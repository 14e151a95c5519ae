"""The agent loop on a log: what it does follows from the records, and every fact is one before it is relied upon.

Four barriers, each of which fails closed. B1: the header and ``model/call`` are durable before the model is asked.
B2: ``tool/call`` is durable *and promised* before the body of a tool runs. B3: the result of an act is durable at
once; that of a read comes with the next barrier. B4: ``turn/end`` is promised before anyone is told.

The agent has no state but the log. Who opens a session after a crash finds the turn closed by the repair, and says
what comes next: a turn is never gone on with, its facts are.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from longrun.errors import ApiError, IncompleteResponse, InvalidInput, OutcomeUnknown
from longrun.eventlog import project
from longrun.eventlog.conduct import CONDUCT
from longrun.eventlog.events import (
    AssistantMessage,
    Compaction,
    ModelCall,
    ModelError,
    RequestHeader,
    ToolCall,
    ToolResult,
    TurnEnd,
    TurnStart,
    UserMessage,
)
from longrun.eventlog.repair import UNKNOWN_TEXT, Found
from longrun.eventlog.snapshot import write_snapshot
from longrun.fake_api import CHARACTERS_PER_TOKEN
from longrun.loop import BLOCKED_TEXT, CONFLICT_TEXT, GAVE_UP_TEXT, MAX_TOKENS, MODEL_NAME
from longrun.messages import canonical, sendable
from longrun.protocol import NO_USAGE
from longrun.resume.reconcile import ATTEMPT_LIMIT
from longrun.tools import DEFINITIONS, TOOLS, act_key

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from longrun.eventlog.conduct import Conduct
    from longrun.eventlog.events import Outcome, Policy
    from longrun.eventlog.grammar import Pending
    from longrun.eventlog.log import EventLog
    from longrun.messages import Block
    from longrun.model import Model
    from longrun.tools import Tool
    from longrun.world import World

STEPS_AT_MOST = 50
TRIES = 3
GO_ON = "The process died in the middle of this. Go on."
GOES_ON = ("tool_use", "pause_turn")
COMPLETES = ("end_turn", "stop_sequence")


def _nobody(_place: str, _promised: dict[str, Any] | None) -> None:
    """Nobody wants to be told."""


def policy_of(tool: Tool) -> Policy:
    """May it be repeated at will, can it be told by its key or by a look, or must a person be asked."""
    if tool.nature == "read-only":
        return "read"
    return "keyed" if tool.nature == "idempotent" or tool.find is not None else "ask"


def asking(world: World, tools: Mapping[str, Tool]) -> Callable[[Pending], Found | None]:
    """The world as a repair asks it."""

    def ask(call: Pending) -> Found | None:
        tool = tools.get(call.name)
        if tool is None or tool.find is None:
            return Found(done=False, repeat=True) if tool is not None and tool.nature == "idempotent" else None
        text = tool.find(world, call.input)
        return Found(done=text is not None, content=text or "", external_id=text)

    return ask


@dataclass(eq=False)
class LogAgent:
    """One process at one open session. ``told(place, promised)`` is called right after a barrier.

    ``promised`` is the last record by seq and sum; None behind the result of an act, which is durable, and no more.
    """

    log: EventLog
    model: Model
    world: World
    tools: Mapping[str, Tool] = field(default_factory=lambda: TOOLS)
    conduct: Conduct = CONDUCT
    system: str = ""
    model_name: str = MODEL_NAME
    told: Callable[[str, dict[str, Any] | None], None] = _nobody

    def triage(self, task: str) -> str:
        """Carry a task to its end, whatever was done of it before. Returns the reason of the last turn."""
        records = self.log.records
        ends = [record.data["reason"] for record in records if record.type == "turn/end"]
        if ends and ends[-1] != "interrupted":
            reason: str = ends[-1]
            return reason
        said = any(record.type == "user/message" for record in records)
        return self.turn(GO_ON if said else task)

    def turn(self, text: str) -> str:
        """One whole turn. Returns the reason of its end; raises what the model or a tool raised."""
        number = self.log.grammar.turn + 1
        self.log.append(TurnStart(turn=number))
        self.log.append(UserMessage(turn=number, content=text))
        for step in range(1, STEPS_AT_MOST + 1):
            message = self._ask(number, step)
            if message is None:
                return self._end("failed")
            going_on = message["stop_reason"] in GOES_ON
            for at, call in enumerate(list(self.log.grammar.pending.values()), 1):
                self._answer(call, f"turn{number}.step{step}.tool{at}", run=going_on)
            if not going_on:
                return self._end("completed" if message["stop_reason"] in COMPLETES else "limit")
        return self._end("limit")

    def compact(self, summary: str, *, keep: int) -> bool:
        """Let the model see a summary in the place of the older part of the branch. Returns whether there was one."""
        chosen = self.conduct.stretch(self.log.grammar, keep)
        if chosen is None:
            return False
        tokens = len(canonical(project.messages(self.log.records))) // CHARACTERS_PER_TOKEN
        self.log.append(Compaction(summary=summary, from_seq=chosen[0], to_seq=chosen[1], tokens_before=tokens))
        self._promise("compaction")
        return True

    # --- the model -------------------------------------------------------------------------------

    def _ask(self, turn: int, step: int) -> dict[str, Any] | None:
        """The answer of the model, durable; None where none came that can be used."""
        for attempt in range(1, TRIES + 1):
            self._header()
            self.log.flush()
            request = project.context(self.log.records)
            header = self.log.grammar.header
            assert header is not None, "it was just written"
            digest = project.request_sha256(request)
            called = ModelCall(turn=turn, step=step, attempt=attempt, header_seq=header, request_sha256=digest)
            self.log.add(called)  # B1
            try:
                response = self.conduct.accept(self.model.reply(request))
            except IncompleteResponse:
                self._failed(turn, step, attempt, "incomplete")
                continue
            except ApiError as error:
                self._failed(turn, step, attempt, "api", error.status)
                raise
            content = sendable(response["content"])
            if not content:
                self._failed(turn, step, attempt, str(response["stop_reason"]))
                return None
            self._keep(turn, step, response, content)
            return response
        return None

    def _failed(self, turn: int, step: int, attempt: int, kind: str, status: int | None = None) -> None:
        self.log.add(ModelError(turn=turn, step=step, attempt=attempt, kind=kind, status=status))

    def _keep(self, turn: int, step: int, response: dict[str, Any], content: list[Block]) -> None:
        self.log.add(
            AssistantMessage(
                turn=turn,
                step=step,
                message_id=response.get("id", ""),
                content=content,
                stop_reason=response["stop_reason"],
                usage={name: response["usage"].get(name) or 0 for name in NO_USAGE},
            )
        )

    def _header(self) -> None:
        """Write the header where there is none yet, or where it has changed."""
        tools = DEFINITIONS if self.tools is TOOLS else [tool.definition() for tool in self.tools.values()]
        last = project.header_at(self.log.records)
        header = RequestHeader(
            model=self.model_name,
            system=self.system,
            tools=tools,
            params={"max_tokens": MAX_TOKENS},
            reason="initial" if last is None else "change",
        )
        if last is None or {**last.data, "reason": ""} != {**header.data(), "reason": ""}:
            self.log.append(header)

    # --- the tools -------------------------------------------------------------------------------

    def _answer(self, call: Pending, place: str, *, run: bool) -> None:
        """Give a call its one result."""
        tool = self.tools.get(call.name)
        if not run:
            return self._result(call, "the answer was stopped before its calls could run", "denied")
        if tool is None:
            return self._result(call, f"there is no tool {call.name!r}", "failed")
        try:
            tool.check(self.world, call.input)
        except InvalidInput as error:
            return self._result(call, str(error), "failed")
        key = act_key(project.scope(self.log.records), tool, {"input": call.input})
        if self._given_up(call):
            return self._result(call, GAVE_UP_TEXT, "denied")
        before = None if key is None else self.conduct.known(self.log, key)
        if before is not None and before.outcome == "done":
            same = before.input == call.input
            return self._result(call, before.content if same else CONFLICT_TEXT, "done" if same else "denied")
        if before is not None and before.outcome == "unknown" and tool.nature == "non-idempotent":
            if tool.find is None:
                return self._result(call, BLOCKED_TEXT, "denied")
            found = tool.find(self.world, before.input)
            if found is not None:
                return self._result(call, found, "done", external_id=found)
        return self._run(call, tool, key, place)

    def _given_up(self, call: Pending) -> bool:
        """Whether this call has been begun three times, and its process has died each time."""
        dead = [
            act
            for act in project.effects(self.log.records)
            if (act.name, act.input) == (call.name, call.input) and act.outcome == "unknown"
        ]
        return len(dead) >= ATTEMPT_LIMIT

    def _run(self, call: Pending, tool: Tool, key: str | None, place: str) -> None:
        policy = policy_of(tool)
        self.log.append(
            ToolCall(
                turn=self.log.grammar.turn,
                step=call.step,
                call_id=call.call_id,
                name=call.name,
                input=call.input,
                policy=policy,
                key=key,
            )
        )
        try:
            text = self.conduct.act(
                lambda: self._promise(f"{place}.call"),  # B2
                lambda: tool.run(self.world, call.input, key or ""),
            )
        except OutcomeUnknown:
            self._result(call, UNKNOWN_TEXT, "unknown")
        else:
            self._result(call, text, "done", external_id=None if policy == "read" else text)
        if policy != "read":
            self.log.flush()  # B3
            self.told(f"{place}.result", None)

    def _result(self, call: Pending, text: str, outcome: Outcome, *, external_id: str | None = None) -> None:
        called = self.log.called(call.call_id)
        self.log.append(
            ToolResult(
                turn=self.log.grammar.turn,
                step=call.step,
                call_id=call.call_id,
                content=text,
                is_error=outcome != "done",
                synthetic=False,
                outcome=outcome,
                call_seq=called,
                external_id=external_id,
            )
        )

    # --- promises --------------------------------------------------------------------------------

    def _end(self, reason: Any) -> str:
        turn = self.log.grammar.turn
        self.log.append(TurnEnd(turn=turn, synthetic=False, reason=reason))
        self._promise(f"turn{turn}.end")  # B4
        if self.log.rotate():
            write_snapshot(self.log)
        return str(reason)

    def _promise(self, place: str) -> None:
        self.log.barrier()
        self.told(place, self._now())

    def _now(self) -> dict[str, Any]:
        last = self.log.records[-1]
        return {"seq": last.seq, "sum": last.sum}
