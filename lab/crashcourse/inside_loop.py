"""Exercises 3.2 and 4.2 in the child: the submission's ``resume(desk)``, which starts where nothing is there yet.

The same function is the workload, on an empty directory, and the recovery, on what a crash has left. What comes of it
is read from the files and from the lab's record of effects once it has returned; nothing that it says counts.
Everything of the agent is imported before the submission is, so that the fence stands between the two.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from crashcourse.desk import desk_of, digests
from crashlab.errors import Violation
from longrun import subjects
from longrun.errors import Damaged, InvalidTranscript, UnsupportedVersion
from longrun.fake_api import FakeApi, usage_of
from longrun.inbox import SHORT_BODY_BYTES, make_inbox
from longrun.loop import TASK, Agent
from longrun.messages import blocks, check_messages, normalised, tool_uses
from longrun.personas import NOTES_HEADING
from longrun.resume import trusting
from longrun.subjects import REQUEST, STANDING_FACTS
from longrun.tools import TOOLS
from longrun.world import World

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crashcourse.desk import Desk
    from crashcourse.inside import Later
    from crashlab.lab import Lab
    from longrun.inbox import Ticket
    from longrun.messages import Block, Message
    from longrun.personas import Persona
    from longrun.protocol import Checkpoint

End = dict[str, Any]
RAN_AGAIN = "left-process"
"""The lab's kind that stands for it here: a run that was over goes on. The least grave, so it hides no other."""


@dataclass(frozen=True)
class Scene:
    """What is to be done: the inbox of ``seed``, by a model of that ``persona``.

    ``brief`` is its middle alone: the letter about an outage, of which all is done but the reply and the page. No key
    protects these two acts, and they are named in one answer; there is a fifth of the file operations.
    """

    seed: int
    persona: Persona
    brief: bool = False

    @property
    def inbox(self) -> tuple[Ticket, ...]:
        """Its letters."""
        whole = make_inbox(self.seed, body_bytes=SHORT_BODY_BYTES)
        return tuple(ticket for ticket in whole if not self.brief or "is down" in ticket.subject)

    @property
    def task(self) -> str:
        """The user's words."""
        if not self.brief:
            return TASK
        names = ("read_ticket", "set_label", "open_case")
        done = [f"{name} {ticket.ticket}" for ticket in self.inbox for name in names]
        return "\n".join([TASK, "", NOTES_HEADING, *(f"- {each}: done" for each in (*done, "write_report "))])

    def desk(self, lab: Lab, *, with_ledger: bool) -> Desk:
        """The desk at which it is to be done."""
        return desk_of(
            lab, seed=self.seed, persona=self.persona, with_ledger=with_ledger, task=self.task, inbox=self.inbox
        )

    def right(self, lab: Lab) -> End:
        """Where the agent of the course comes to."""
        world = World(lab, self.inbox)
        last = Agent(lab.dir, trusting.HARNESS, FakeApi(self.persona, self.seed), world).start(self.task)
        return {"world": world.view(), "transcript": normalised(last.messages)}


@dataclass(frozen=True)
class Loop:
    """The submission in a scene.

    ``right`` is where the agent of the course comes to there. Without ``with_ledger`` the ledger is the submission's
    own.
    """

    function: Later
    scene: Scene
    right: End
    with_ledger: bool = True

    def work(self, lab: Lab) -> End:
        """From whatever lies there to the end."""
        desk = self.scene.desk(lab, with_ledger=self.with_ledger)
        before, asked = _stored(lab), len(lab.records(REQUEST))
        missing, found = _not_counted(before, asked), digests(lab.dir)
        try:
            self.function(desk)
        except Exception:
            if not desk.refusals:
                raise
        last = _stored(lab)
        end: End = {
            "refusals": desk.refusals,
            "world": World(lab, self.scene.inbox).view(),
            "stored": last is not None,
            "ledger": [found, digests(lab.dir)],
            "ledger_seen": last.ledger_seen if last else 0,
            "resumed": before is not None,
            "seq_before": before.seq if before else 0,
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
        if not self.with_ledger:
            _demand_ledger(lab, end)
        self._demand_right(end)

    def _demand_right(self, end: End) -> None:
        for fact in STANDING_FACTS:
            if end["world"][fact] != self.right["world"][fact]:
                text = f"{fact}: {end['world'][fact]!r:.80}, expected {self.right['world'][fact]!r:.80}"
                raise Violation(text)
        # Told that something is unknown, or has to wait for a person, the model takes another way to the same world.
        told = any(block.get("is_error") for message in end["transcript"] for block in blocks(message))
        if not told and _without_receipts(end["transcript"]) != _without_receipts(self.right["transcript"]):
            text = "the saved messages are not the whole conversation: each answer, and its results in one user message"
            raise Violation(text)


def view(end: End) -> End:
    """What counts in an end, short; digests of the ledger are others in every run, since its keys are."""
    return {**subjects.view(end), "ledger": [len(each) for each in end["ledger"]]}


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


def _demand_ledger(lab: Lab, end: End) -> None:
    """The ledger only grows, is believed only if it is the one that was counted, and has a line for every act."""
    found, now = end["ledger"]
    # Where an error is met, the acks of this very process are among them.
    acks = [(0, 0, found[0])]
    acks += [
        (ack["seq"], ack["ledger"], ack["digest"]) for ack in lab.acked if isinstance(ack, dict) and "digest" in ack
    ]
    _, seen, digest = [ack for ack in acks if ack[0] <= end["seq_before"]][-1]
    if not end["over_before"] and (seen >= len(found) or found[seen] != digest):
        text = f"a save had counted {seen} lines of effects.jsonl; these are not what lay there, and resume went on"
        raise Violation(text, kind="accepted-damage")
    _, seen, digest = acks[-1]
    if (not end["over_before"] or now != found) and (seen >= len(now) or now[seen] != digest):
        text = f"a save had counted {seen} lines of effects.jsonl; they are there no more"
        raise Violation(text, kind="evidence-destroyed")
    if end["over_before"] or not end["resumed"]:
        return
    acts = {each.name + json.dumps(each.detail, sort_keys=True) for each in lab.records() if each.name != REQUEST}
    if len(now) - 1 < len(acts):
        text = f"effects.jsonl has {len(now) - 1} lines, and {len(acts)} acts were done"
        raise Violation(text)
    if end["ledger_seen"] != len(now) - 1:
        text = f"the last save counts {end['ledger_seen']} lines of effects.jsonl (ledger_seen), it has {len(now) - 1}"
        raise Violation(text)


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
