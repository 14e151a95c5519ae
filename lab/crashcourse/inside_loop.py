"""Exercises 3.2 and 4.2 in the child: the submission's ``resume(desk)``, which starts where nothing is there yet.

The same function is the workload, on an empty directory, and the recovery, on what a crash has left. What comes of it
is read from the files and from the lab's record of effects once it has returned; nothing that it says counts.
Everything of the agent is imported before the submission is, so that the fence stands between the two.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from crashcourse.desk import desk_of
from crashlab.errors import Violation
from longrun.errors import Damaged, InvalidTranscript, UnsupportedVersion
from longrun.fake_api import usage_of
from longrun.inbox import SHORT_BODY_BYTES, make_inbox
from longrun.messages import blocks, check_messages, normalised, tool_uses
from longrun.resume import trusting
from longrun.subjects import REQUEST, STANDING_FACTS
from longrun.tools import TOOLS
from longrun.world import World

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crashcourse.inside import Later
    from crashlab.lab import Lab
    from longrun.messages import Block, Message
    from longrun.personas import Persona
    from longrun.protocol import Checkpoint

End = dict[str, Any]
UNKNOWN = "outcome unknown"
"""The words by which a model understands that nobody knows."""
RAN_AGAIN = "left-process"
"""The lab's kind that stands for it here: a run that was over goes on. The least grave, so it hides no other."""


@dataclass(frozen=True)
class Loop:
    """The submission on the inbox of ``seed``, with a model of that ``persona``.

    ``world`` and ``transcript`` are where the agent of the course comes to on the same inbox. Without ``with_ledger``
    the ledger is the submission's own.
    """

    function: Later
    seed: int
    persona: Persona
    world: dict[str, Any]
    transcript: list[Message]
    with_ledger: bool = True

    def work(self, lab: Lab) -> End:
        """From whatever lies there to the end."""
        desk = desk_of(lab, seed=self.seed, persona=self.persona, with_ledger=self.with_ledger)
        before, asked = _stored(lab), len(lab.records(REQUEST))
        missing = _not_counted(before, asked)
        try:
            self.function(desk)
        except Exception:
            if not desk.refusals:
                raise
        last = _stored(lab)
        end: End = {
            "refusals": desk.refusals,
            "world": World(lab, make_inbox(self.seed, body_bytes=SHORT_BODY_BYTES)).view(),
            "stored": last is not None,
            "over_before": before is not None and _is_over(before),
            "requests": len(lab.records(REQUEST)) - asked,
            "saves": (last.seq if last else 0) - (before.seq if before else 0),
        }
        if last is None:
            return {**end, "seq": 0, "transcript": [], "not_counted": {}}
        missing = {**_not_counted(last, len(lab.records(REQUEST))), **missing}
        return {**end, "seq": last.seq, "transcript": normalised(last.messages), "not_counted": missing}

    def check(self, lab: Lab, end: End) -> None:
        """Raise Violation unless the end is right; effects are counted by the lab itself."""
        _demand_rest(end)
        _demand_sendable(end)
        for name, number in end["not_counted"].items():
            text = f"the saved state counts {number} {name} less than there were"
            raise Violation(text, kind="guard-bypassed")
        promised = max(
            (ack["seq"] for ack in lab.acked if isinstance(ack, dict) and type(ack.get("seq")) is int), default=0
        )
        if end["seq"] < promised:
            text = f"save {promised} was acked, found is {end['seq']}"
            raise Violation(text, kind="lost")
        self._demand_right(end)

    def _demand_right(self, end: End) -> None:
        for fact in STANDING_FACTS:
            if end["world"][fact] != self.world[fact]:
                text = f"{fact}: {end['world'][fact]!r:.80}, expected {self.world[fact]!r:.80}"
                raise Violation(text)
        # After an unknown the model takes another way to the same world.
        told = UNKNOWN in json.dumps(end["transcript"])
        if not told and _without_receipts(end["transcript"]) != _without_receipts(self.transcript):
            text = "the saved messages are not the whole conversation: each answer, and its results in one user message"
            raise Violation(text)


def _stored(lab: Lab) -> Checkpoint | None:
    """What lies there, if it can be read."""
    try:
        return trusting.load(lab.dir)
    except (Damaged, UnsupportedVersion):
        return None


def _is_over(saved: Checkpoint) -> bool:
    """Whether nothing is left to do: it says so, or the model has said its last words."""
    last = saved.messages[-1]
    return saved.finished or (last["role"] == "assistant" and not tool_uses(last) and not saved.pending_tool_use)


def _not_counted(saved: Checkpoint | None, requests: int) -> dict[str, int]:
    """What a saved state counts less than there was, and by how much."""
    if saved is None:
        return {}
    counted = {
        "requests": (requests, saved.requests_started),
        "tokens": (_paid(saved.messages), saved.tokens_used),
        "turns": (sum(message["role"] == "assistant" for message in saved.messages), saved.turns),
    }
    return {name: real - said for name, (real, said) in counted.items() if real > said}


def _paid(messages: Sequence[Message]) -> int:
    """What the answers have cost, by the server's own reckoning."""
    said = (at for at, message in enumerate(messages) if message["role"] == "assistant")
    return sum(sum(usage_of(messages[:at], messages[at]["content"]).values()) for at in said)


def _demand_rest(end: End) -> None:
    """A run that was over must be left alone."""
    if end["over_before"] and (end["requests"] or end["saves"] or end["refusals"]):
        answer = f", and got: {end['refusals'][0]}" if end["refusals"] else ""
        text = f"the run was over, and resume asked {end['requests']} times more and saved {end['saves']} times{answer}"
        raise Violation(text, kind=RAN_AGAIN)


def _demand_sendable(end: End) -> None:
    if end["refusals"]:
        text = f"the server answered 400: {end['refusals'][0]}"
        raise Violation(text, kind="invalid-transcript")
    if not end["stored"]:
        text = "resume returned, and no state that can be read is stored"
        raise Violation(text)
    try:
        check_messages(end["transcript"], may_end_with_assistant=True)
    except InvalidTranscript as error:
        text = f"the saved messages would be refused: {error}"
        raise Violation(text, kind="invalid-transcript") from error


def _without_receipts(messages: Sequence[Message]) -> list[Message]:
    """The conversation without the results of acts, whose receipts depend on the order in which they were done."""
    names = {call["id"]: call["name"] for message in messages for call in tool_uses(message)}
    return [
        {"role": message["role"], "content": [_without_receipt(block, names) for block in blocks(message)]}
        for message in messages
    ]


def _without_receipt(block: Block, names: dict[str, str]) -> Block:
    tool = TOOLS.get(names.get(block.get("tool_use_id", ""), ""))
    return block if tool is None or tool.nature == "read-only" else {**block, "content": ""}
