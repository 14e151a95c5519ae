"""The agent loop, durable: ask, save, act, save; and go on from any of these saves after a kill.

The loop turns on ``stop_reason`` and answers parallel calls together, one by one in their order. What
it owes to a crash is in the order of its steps: a request is counted in a save before it is sent (R,
B), an answer is saved before its calls run (A), an act is marked before it is done (S) and recorded
right after, and all answers go to the model in one message that is saved first (B). Who works in a directory
holds its lease (:mod:`longrun.lease`) until the run ends or fails.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from longrun import files, v1
from longrun.booking import NO_GAIN, Gain
from longrun.errors import Damaged, HistoryExists, InvalidInput, OutcomeUnknown
from longrun.ledger import LEDGER_NAME, record_of
from longrun.messages import sendable, text_of, tool_result, user
from longrun.protocol import NO_USAGE, Checkpoint, OpenCall
from longrun.questions import asked, gone_on, input_of
from longrun.resume.reconcile import Decision, evidence_of
from longrun.tools import DEFINITIONS, TOOLS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from longrun.harness import Harness
    from longrun.lease import Owner
    from longrun.ledger import Acts, Outcome, Record
    from longrun.messages import Block
    from longrun.model import Model
    from longrun.questions import Question
    from longrun.resume.reconcile import Evidence
    from longrun.tools import Tool
    from longrun.world import World

TASK = "Triage the inbox: label every ticket, act where it is needed, and write the report."
MODEL_NAME = "claude-fake-1"
MAX_TOKENS = 4096
LEDGER_NAMES = (LEDGER_NAME, v1.EFFECTS_NAME)

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
    (``{"seq": 9}``) or of the record (``{"ledger": 4}``). ``opened`` is the checkpoint with which it went on,
    ``state`` the one that it is at.
    """

    directory: Path
    harness: Harness
    model: Model
    world: World
    told: Callable[[str, dict[str, int]], None] = _nobody
    tools: Mapping[str, Tool] = field(default_factory=lambda: TOOLS)
    model_name: str = MODEL_NAME
    opened: Checkpoint | None = field(default=None, init=False)
    state: Checkpoint = field(init=False)
    _ledger: Acts | None = field(default=None, init=False)
    _lease: Owner = field(init=False)
    _epoch: int = field(default=0, init=False)
    _gain: Gain = field(default=NO_GAIN, init=False)

    def start(self, task: str = TASK) -> Checkpoint:
        """Run from the beginning to the end. Raises HistoryExists over a stored run, LeaseHeld over a live one."""
        return self._run_leased(task, resume=False)

    def resume(self, task: str = TASK) -> Checkpoint:
        """Go on from what is stored, to the end; where nothing is stored, start.

        Raises Damaged or UnsupportedVersion, and then has changed nothing; LeaseHeld while another process
        works here; LostLease when another one took over.
        """
        return self._run_leased(task, resume=True)

    def unknown(self) -> list[tuple[str, dict[str, Any]]]:
        """Tool and input of every act whose outcome nobody knows: what a person must decide."""
        return [(each.tool, each.input) for each in self.questions()]

    def questions(self) -> list[Question]:
        """The acts whose outcome nobody knows, by name: what a person is asked."""
        return asked(self.state, self._acts())

    # --- opening -------------------------------------------------------------------------------

    def _run_leased(self, task: str, *, resume: bool) -> Checkpoint:
        self._ledger, self._gain, self._epoch = None, NO_GAIN, 0  # whatever an earlier run of this agent has left
        with self.harness.lease(self.directory) as self._lease:
            if not resume:
                self._require_empty()
            self.harness.convert(self.directory)
            return self._go_on(self.harness.load(self.directory) if resume else None, task)

    def _require_empty(self) -> None:
        if held := self.harness.history(self.directory):
            text = f"{self.directory} holds a run already ({', '.join(held)}): resume it, or take another directory"
            raise HistoryExists(text)

    def _go_on(self, saved: Checkpoint | None, task: str) -> Checkpoint:
        self.opened = saved
        try:
            if saved is None:
                self._begin(task)
            else:
                self._reopen(saved)
            while not self.state.finished:
                if self.state.pending_tool_use:
                    self._answer_calls()
                elif (end := self.harness.cap(self.state, self.opened)) is not None:
                    self._stop(**end)
                else:
                    self._ask()
            return self.state
        finally:
            if self._ledger is not None:
                self._ledger.close()

    def _begin(self, task: str) -> None:
        """The first save, and an empty ledger; a kill between them leaves save number 1 alone."""
        for path in (self.directory / name for name in LEDGER_NAMES):
            if path.exists():
                raise Damaged(path, "a ledger without a checkpoint: the checkpoint is lost")
        self.harness.clear(self.directory)
        run_id = f"run-{os.urandom(8).hex()}"
        self.state = Checkpoint(run_id=run_id, task=task, messages=(user(task),), requests_started=1)
        self.save("R")

    def _reopen(self, saved: Checkpoint) -> None:
        self._ledger = self.harness.ledger(self.directory, saved)
        self.harness.clear(self.directory)
        files.sync_directory(self.directory)  # the name that was read may be in the page cache only
        self._epoch = saved.writer_epoch
        self.state = saved = gone_on(saved, self._ledger)
        if not saved.finished:
            self.save("R", replace(self.harness.reopen(saved), writer_epoch=saved.writer_epoch + 1))
            self.harness.reconcile(self)

    def save(self, point: str, state: Checkpoint | None = None) -> None:
        """Make ``state`` the state, and durable where saves of this kind are made. Raises LostLease before that."""
        now = state or self.state
        kind = point.rpartition(".")[2]
        if kind not in self.harness.save_points:
            self.state = now
            return
        seen = len(self._ledger.records) if self._ledger is not None else 0
        self.state = replace(now, seq=now.seq + 1, parent=now.seq or None, ledger_seen=seen)
        self._lease.require(self._epoch)
        self.harness.save(self.directory, self.state)
        self._epoch = self.state.writer_epoch
        self.told(point, {"seq": self.state.seq})
        self._acts()

    def _acts(self) -> Acts:
        """The ledger; a new one as soon as there is a checkpoint to stand beside it."""
        if self._ledger is None:
            self._lease.require(self._epoch)
            self._ledger = self.harness.ledger(self.directory, None)
        return self._ledger

    # --- asking --------------------------------------------------------------------------------

    def _ask(self) -> None:
        state = self.state
        request = {
            "model": self.model_name,
            "max_tokens": MAX_TOKENS,
            "tools": DEFINITIONS if self.tools is TOOLS else [tool.definition() for tool in self.tools.values()],
            "messages": list(state.messages),
        }
        response = self.harness.accept(self.model.reply(request))
        content = sendable(response["content"])
        said = ({"role": "assistant", "content": content},) if content else ()
        cost = {name: response["usage"].get(name) or 0 for name in NO_USAGE}
        self._gain = Gain(turns=len(said), requests_saved=1, usage=cost)
        state = replace(state, messages=(*state.messages, *said), context_tokens=sum(cost.values()))
        calls = self._open_calls(content, state.run_id)
        match response["stop_reason"]:
            case "tool_use":
                self.save(self.place("A", state), replace(self._booked(state, "A"), pending_tool_use=calls))
            case "pause_turn":  # the server wants to go on: the transcript goes back as it is
                started = state.requests_started + 1
                self.save(self.place("A", state), replace(self._booked(state, "A"), requests_started=started))
            case "end_turn" | "stop_sequence" as reason:
                self.state = self._booked(state, "E")
                self._settle()
                self._end(reason, content)
            case reason:
                self.state = replace(self._booked(state, "E"), pending_tool_use=calls)
                self._stop(reason, text_of({"content": content}))

    def _booked(self, state: Checkpoint, point: str) -> Checkpoint:
        return self.harness.book(state, self._gain, point)

    def place(self, point: str, state: Checkpoint | None = None) -> str:
        """The name of a save point in the latest turn."""
        messages = (state or self.state).messages
        return f"turn{sum(message['role'] == 'assistant' for message in messages)}.{point}"

    def _end(self, reason: str, content: list[Block]) -> None:
        """The model has come to its end: done, or a person has to decide first."""
        if self._acts().unknown():
            self.save("E", replace(self.state, status="waiting"))
        else:
            end = {"reason": reason, "text": text_of({"content": content})}
            self.save("E", replace(self.state, status="done", end=end))

    def _stop(self, reason: str, text: str) -> None:
        self.save("E", replace(self.state, status="stopped", end={"reason": reason, "text": text}))

    def _open_calls(self, content: list[Block], run_id: str) -> tuple[OpenCall, ...]:
        return tuple(self._open_call(block, run_id) for block in content if block["type"] == "tool_use")

    def _open_call(self, call: Block, run_id: str) -> OpenCall:
        tool = self.tools.get(call["name"])
        key = self.harness.key(run_id, tool, call) if tool else None
        read = key is None  # a read is marked as begun in the save that names it: it needs none of its own
        return OpenCall(
            id=call["id"], name=call["name"], input=call["input"], key=key, attempts=int(read), started=read
        )

    def _settle(self) -> None:
        """At the end: acts that were unknown, but that the world can tell of, are recorded as done."""
        for record in self._acts().unknown():
            found = self._look_up(record, input_of(self.state, record))
            if found is not None:
                self._append(replace(record, outcome="done", result=found), "settled")

    # --- answering calls -----------------------------------------------------------------------

    def _answer_calls(self) -> None:
        self.harness.close(self, [self.answer(index) for index in range(len(self.state.pending_tool_use))])

    def close(self, results: list[Block]) -> None:
        """Save (B) that ``results`` answer all open calls."""
        self.save(self.place("B"), self._booked(self.answered(results), "B"))
        self._gain = NO_GAIN

    def answered(self, results: list[Block]) -> Checkpoint:
        """The state once ``results`` answer all open calls; the next request is counted with them."""
        return replace(
            self.state,
            messages=(*self.state.messages, {"role": "user", "content": results}),
            pending_tool_use=(),
            requests_started=self.state.requests_started + 1,
        )

    def answer(self, index: int) -> Block:
        """The result of one open call: carried out, taken from the ledger, or told to be unknown."""
        call = self.state.pending_tool_use[index]
        tool = self.tools.get(call.name)
        if tool is None:
            return tool_result(call.id, f"there is no tool {call.name!r}", is_error=True)
        try:
            tool.check(self.world, call.input)
        except InvalidInput as error:
            return tool_result(call.id, str(error), is_error=True)
        with self.harness.claim(self._acts(), call) as begun_elsewhere:
            evidence = evidence_of(call, tool, self.known(call), begun_elsewhere=begun_elsewhere)
            return self._carry_out(call, tool, evidence, self.place(f"tool{index + 1}"))

    def known(self, call: OpenCall) -> Record | None:
        """What the ledger knows last of the act that ``call`` names."""
        return None if call.key is None else self._acts().latest(call.key)

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
                act_input = call.input if evidence.same_input else input_of(self.state, record)
                if not act_input:  # it was named in a line that a rewind left: nobody here knows what to look for
                    return tool_result(call.id, BLOCKED_TEXT, is_error=True)
                found = self._look_up(record, act_input)
                if found is None:
                    return self._run(call, tool, place)
                self._append(replace(record, outcome="done", result=found), f"{place}.ledger")
                return self._carry_out(call, tool, replace(evidence, record=self._acts().latest(record.key)), place)
            case Decision.RECORD_UNKNOWN:
                return self.record(call, "unknown", UNKNOWN_TEXT, place)
            case Decision.GIVE_UP:
                if call.key is None or record is not None:
                    return tool_result(call.id, GAVE_UP_TEXT, is_error=True)
                return self.record(call, "gave_up", GAVE_UP_TEXT, place)
            case Decision.BLOCKED:
                return tool_result(call.id, BLOCKED_TEXT, is_error=True)
            case _:
                return tool_result(call.id, CONFLICT_TEXT, is_error=True)

    def _run(self, call: OpenCall, tool: Tool, place: str) -> Block:
        if call.key is None:
            return tool_result(call.id, tool.run(self.world, call.input, ""))
        try:
            return self.harness.act(self, call, tool, place)
        except OutcomeUnknown:
            return self.record(call, "unknown", UNKNOWN_TEXT, place)

    def mark(self, call: OpenCall, place: str) -> None:
        """Save (S) that ``call`` is begun, once more or for the first time."""
        begun = replace(call, started=True, attempts=call.attempts + 1)
        calls = tuple(begun if each.id == call.id else each for each in self.state.pending_tool_use)
        self.save(f"{place}.S", replace(self.state, pending_tool_use=calls))

    def do(self, call: OpenCall, tool: Tool) -> str:
        """Do it to the world, while the lease is held, and return the text of its result."""
        self._lease.require(self._epoch)
        return tool.run(self.world, call.input, call.key or "")

    def record(self, call: OpenCall, outcome: Outcome, result: str, place: str) -> Block:
        """Append what is known of the act to the ledger, and make it the answer to ``call``."""
        self._append(record_of(self.state, call, outcome, result), f"{place}.ledger")
        return tool_result(call.id, result, is_error=outcome != "done")

    def _look_up(self, record: Record, act_input: dict[str, Any]) -> str | None:
        find = self.tools[record.tool].find
        return None if find is None else find(self.world, act_input)

    def _append(self, record: Record, place: str) -> None:
        self._acts().append(replace(record, n=len(self._acts().records) + 1))
        if self._acts().durable:
            self.told(place, {"ledger": len(self._acts().records)})
