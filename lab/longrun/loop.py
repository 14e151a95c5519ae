"""The agent loop, durable: ask, save, act, save; and go on from any of these saves after a kill.

The loop turns on ``stop_reason`` and answers parallel calls together, one by one in their order. What
it owes to a crash is in the order of its steps: a request is counted in a save before it is sent (R,
B), an answer is saved before its calls run (A), an act is marked before it is done (S) and recorded
right after, and all answers go to the model in one message that is saved first (B). It does not
guard against a second process on the same directory.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from longrun import files
from longrun.errors import Damaged, HistoryExists, InvalidInput
from longrun.ledger import LEDGER_NAME, Ledger, Record
from longrun.messages import text_of, tool_result, tool_uses, user
from longrun.model import require_complete
from longrun.protocol import CHECKPOINT_NAME, NO_USAGE, Checkpoint, OpenCall
from longrun.resume.reconcile import Decision, Evidence, begun_before
from longrun.tools import DEFINITIONS, TOOLS, act_key, args_digest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from longrun.harness import Harness
    from longrun.ledger import Outcome
    from longrun.messages import Block
    from longrun.model import Model
    from longrun.tools import Tool
    from longrun.world import World

TASK = "Triage the inbox: label every ticket, act where it is needed, and write the report."
MODEL_NAME = "claude-fake-1"
MAX_TOKENS = 4096

UNKNOWN_TEXT = "outcome unknown: the process died while this was being done, so it may or may not have happened"
BLOCKED_TEXT = "blocked: nobody knows how an earlier attempt ended, and a person must decide. Go on without it."
GAVE_UP_TEXT = "gave up: three attempts did not come to an end"
CONFLICT_TEXT = "conflict: this act was done already with another input, and is not done twice"


def _nobody(_place: str, _value: dict[str, int]) -> None:
    """Nobody wants to be told."""


@dataclass(eq=False)
class Agent:
    """One run in one directory.

    ``told(place, value)`` is called right after each save and each ledger record is durable: the
    place is a save point's name such as ``turn5.tool2.S``, the value the number of the save
    (``{"seq": 9}``) or of the record (``{"ledger": 4}``). ``opened`` is the checkpoint with which it went on.
    """

    directory: Path
    harness: Harness
    model: Model
    world: World
    told: Callable[[str, dict[str, int]], None] = _nobody
    opened: Checkpoint | None = field(default=None, init=False)
    _state: Checkpoint = field(init=False)
    _ledger: Ledger = field(init=False)

    def start(self, task: str = TASK) -> Checkpoint:
        """Run from the beginning to the end. Raises HistoryExists over a stored run."""
        held = [name for name in (CHECKPOINT_NAME, LEDGER_NAME) if (self.directory / name).exists()]
        if held:
            text = f"{self.directory} holds a run already ({', '.join(held)}): resume it, or take another directory"
            raise HistoryExists(text)
        return self._go_on(None, task)

    def resume(self, task: str = TASK) -> Checkpoint:
        """Go on from what is stored, to the end; where nothing is stored, start.

        Raises Damaged or UnsupportedVersion, and then has changed nothing.
        """
        return self._go_on(self.harness.load(self.directory), task)

    def unknown(self) -> list[tuple[str, dict[str, Any]]]:
        """Tool and input of every act whose outcome nobody knows: what a person must decide."""
        return [(record.tool, self._input_of(record)) for record in self._ledger.unknown()]

    # --- opening -------------------------------------------------------------------------------

    def _go_on(self, saved: Checkpoint | None, task: str) -> Checkpoint:
        self.opened = saved
        self._ledger = self._begin(task) if saved is None else self._open_ledger(saved)
        try:
            if saved is not None:
                self._reopen(saved)
            while not self._state.finished:
                if self._state.pending_tool_use:
                    self._answer_calls()
                else:
                    self._ask()
            return self._state
        finally:
            self._ledger.close()

    def _begin(self, task: str) -> Ledger:
        """The first save, and an empty ledger; a kill between them leaves save number 1 alone."""
        path = self.directory / LEDGER_NAME
        if path.exists():
            raise Damaged(path, "a ledger without a checkpoint: the checkpoint is lost")
        files.remove_temporary(self.directory)
        run_id = f"run-{os.urandom(8).hex()}"
        self._state = Checkpoint(run_id=run_id, task=task, messages=(user(task),), requests_started=1)
        self._save("R")
        return Ledger.create(path)

    def _open_ledger(self, saved: Checkpoint) -> Ledger:
        path = self.directory / LEDGER_NAME
        if saved.seq == 1 and not path.exists():  # later it can only have been lost
            return Ledger.create(path)
        return Ledger.open(path, seen=saved.ledger_seen)

    def _reopen(self, saved: Checkpoint) -> None:
        files.remove_temporary(self.directory)
        files.sync_directory(self.directory)  # the name that was read may be in the page cache only
        self._state = saved
        if not saved.finished:
            self._save("R", self.harness.reopen(saved))

    def _save(self, point: str, state: Checkpoint | None = None) -> None:
        """Make ``state`` the state, and durable where saves of this kind are made."""
        now = state or self._state
        kind = point.rpartition(".")[2]
        if kind not in self.harness.save_points:
            self._state = now
            return
        seen = len(self._ledger.records) if now.seq else 0
        self._state = replace(now, seq=now.seq + 1, parent=now.seq or None, ledger_seen=seen)
        self.harness.save(self.directory, self._state)
        self.told(point, {"seq": self._state.seq})

    # --- asking --------------------------------------------------------------------------------

    def _ask(self) -> None:
        state = self._state
        request = {
            "model": MODEL_NAME,
            "max_tokens": MAX_TOKENS,
            "tools": DEFINITIONS,
            "messages": list(state.messages),
        }
        response = self.model.reply(request)
        message = require_complete(response)
        cost = {name: response["usage"].get(name) or 0 for name in NO_USAGE}
        usage = {name: state.usage[name] + cost.get(name, 0) for name in state.usage}
        state = replace(
            state,
            messages=(*state.messages, message),
            turns=state.turns + 1,
            requests_saved=state.requests_saved + 1,
            usage=usage,
            tokens_used=sum(usage.values()),
            context_tokens=sum(cost.values()),
        )
        match response["stop_reason"]:
            case "tool_use":
                self._save(f"turn{state.turns}.A", replace(state, pending_tool_use=self._open_calls(state)))
            case "pause_turn":  # the server wants to go on: the transcript goes back as it is
                self._save(f"turn{state.turns}.A", replace(state, requests_started=state.requests_started + 1))
            case "end_turn" | "stop_sequence":
                self._settle()
                waiting = bool(self._ledger.unknown())
                end = None if waiting else {"reason": response["stop_reason"], "text": text_of(message)}
                self._save("E", replace(state, status="waiting" if waiting else "done", end=end))
            case reason:
                self._save("E", replace(state, status="stopped", end={"reason": reason, "text": text_of(message)}))

    def _open_calls(self, state: Checkpoint) -> tuple[OpenCall, ...]:
        return tuple(self._open_call(call, state.run_id) for call in tool_uses(state.messages[-1]))

    def _open_call(self, call: Block, run_id: str) -> OpenCall:
        tool = TOOLS.get(call["name"])
        key = act_key(run_id, tool, call["input"]) if tool else None
        read = key is None  # a read is marked as begun in the save that names it: it needs none of its own
        return OpenCall(
            id=call["id"], name=call["name"], input=call["input"], key=key, attempts=int(read), started=read
        )

    def _settle(self) -> None:
        """At the end: acts that were unknown, but that the world can tell of, are recorded as done."""
        for record in self._ledger.unknown():
            found = self._look_up(record, self._input_of(record))
            if found is not None:
                self._append(replace(record, outcome="done", result=found), "settled")

    def _input_of(self, record: Record) -> dict[str, Any]:
        """The input of a recorded act, from the transcript; empty where its message is no longer there."""
        calls = (call for message in self._state.messages for call in tool_uses(message))
        return next((call["input"] for call in calls if call["id"] == record.tool_use_id), {})

    # --- answering calls -----------------------------------------------------------------------

    def _answer_calls(self) -> None:
        results = [self._answer(index) for index in range(len(self._state.pending_tool_use))]
        state = self._state
        answered = replace(
            state,
            messages=(*state.messages, {"role": "user", "content": results}),
            pending_tool_use=(),
            requests_started=state.requests_started + 1,
        )
        self._save(f"turn{state.turns}.B", answered)

    def _answer(self, index: int) -> Block:
        call = self._state.pending_tool_use[index]
        tool = TOOLS.get(call.name)
        if tool is None:
            return tool_result(call.id, f"there is no tool {call.name!r}", is_error=True)
        try:
            tool.check(self.world, call.input)
        except InvalidInput as error:
            return tool_result(call.id, str(error), is_error=True)
        place = f"turn{self._state.turns}.tool{index + 1}"
        record = self._ledger.latest(call.key) if call.key is not None else None
        evidence = Evidence(
            nature=tool.nature,
            attempts=begun_before(call),
            started=call.started,
            record=record,
            same_input=record is None or record.args_digest == args_digest(call.input),
            can_look_up=tool.find is not None,
        )
        return self._carry_out(call, tool, evidence, place)

    def _carry_out(self, call: OpenCall, tool: Tool, evidence: Evidence, place: str) -> Block:
        record = evidence.record
        match self.harness.decide(evidence):
            case Decision.RUN:
                return self._run(call, tool, place)
            case Decision.REUSE:
                assert record is not None
                return tool_result(call.id, record.result)
            case Decision.LOOK_UP:
                assert record is not None
                # What may have been done is what was recorded: the model may have found other words since.
                found = self._look_up(record, call.input if evidence.same_input else self._input_of(record))
                if found is None:
                    return self._run(call, tool, place)
                self._append(replace(record, outcome="done", result=found), f"{place}.ledger")
                return self._carry_out(call, tool, replace(evidence, record=self._ledger.latest(record.key)), place)
            case Decision.RECORD_UNKNOWN:
                return self._recorded(call, "unknown", UNKNOWN_TEXT, place)
            case Decision.GIVE_UP:
                if call.key is None or record is not None:
                    return tool_result(call.id, GAVE_UP_TEXT, is_error=True)
                return self._recorded(call, "gave_up", GAVE_UP_TEXT, place)
            case Decision.BLOCKED:
                return tool_result(call.id, BLOCKED_TEXT, is_error=True)
            case _:
                return tool_result(call.id, CONFLICT_TEXT, is_error=True)

    def _run(self, call: OpenCall, tool: Tool, place: str) -> Block:
        if call.key is None:
            return tool_result(call.id, tool.run(self.world, call.input, ""))
        begun = replace(call, started=True, attempts=call.attempts + 1)
        calls = tuple(begun if each.id == call.id else each for each in self._state.pending_tool_use)
        self._save(f"{place}.S", replace(self._state, pending_tool_use=calls))
        result = tool.run(self.world, call.input, call.key)
        return self._recorded(call, "done", result, place)

    def _look_up(self, record: Record, act_input: dict[str, Any]) -> str | None:
        find = TOOLS[record.tool].find
        return None if find is None else find(self.world, act_input)

    def _recorded(self, call: OpenCall, outcome: Outcome, result: str, place: str) -> Block:
        assert call.key is not None
        record = Record(
            n=0,
            run_id=self._state.run_id,
            timeline=self._state.timeline,
            writer_epoch=self._state.writer_epoch,
            key=call.key,
            tool=call.name,
            args_digest=args_digest(call.input),
            tool_use_id=call.id,
            outcome=outcome,
            result=result,
        )
        self._append(record, f"{place}.ledger")
        return tool_result(call.id, result, is_error=outcome != "done")

    def _append(self, record: Record, place: str) -> None:
        number = len(self._ledger.records) + 1
        self._ledger.append(replace(record, n=number))
        self.told(place, {"ledger": number})
