"""The agent as a subject of crashlab: how it runs, how it resumes, and what must be true at its end.

The lab is the outside world here, so that effects outlive the agent. That each effect is there once,
the lab counts by itself; :meth:`Description.check` adds what only this agent can know. A request is an
effect too, since it costs: all of them bear one key, so that the lab takes any number of them, and its
record is the server's own tally over all processes.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from crashlab.errors import Violation
from crashlab.subject import Subject
from longrun.errors import ApiError, IncompleteResponse, InvalidTranscript
from longrun.fake_api import FakeApi, usage_of
from longrun.inbox import BODY_BYTES, DEFAULT_SEED, make_inbox
from longrun.ledger import LEDGER_NAME, read_records
from longrun.loop import UNKNOWN_TEXT, Agent
from longrun.messages import canonical, check_messages, normalised
from longrun.tools import TOOLS
from longrun.world import World

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from crashlab.lab import Lab
    from longrun.harness import Harness
    from longrun.inbox import Ticket
    from longrun.knobs import Knobs
    from longrun.ledger import Record
    from longrun.messages import Message
    from longrun.personas import Persona
    from longrun.protocol import Checkpoint
    from longrun.tools import Tool

End = dict[str, Any]
STANDING_FACTS = ("labels", "cases", "report")
REQUEST = "model_request"


@dataclass(frozen=True)
class Description:
    """One harness on one inbox with one model, run under a :class:`crashlab.Lab`.

    ``knobs`` are those of the server that a resumed process meets: the uncrashed run shows what is right.
    """

    harness: Harness
    persona: Persona
    seed: int
    inbox: tuple[Ticket, ...]
    knobs: Mapping[int, Knobs] = field(default_factory=dict)
    tools: Mapping[str, Tool] | None = None

    def run(self, lab: Lab) -> End:
        """The workload: from an empty directory to the end."""
        return self._work(lab, resume=False)

    def resume(self, lab: Lab) -> End:
        """The recovery: from whatever lies in the directory to the end."""
        return self._work(lab, resume=True)

    def agent(self, lab: Lab, *, knobs: Mapping[int, Knobs]) -> tuple[Agent, FakeApi]:
        """The agent of one process, and the server that it asks."""

        def told(place: str, value: dict[str, int]) -> None:
            lab.save_point(place)
            lab.ack(value)

        api = FakeApi(self.persona, self.seed, knobs=knobs, asked=lambda: tally(lab))
        return Agent(lab.dir, self.harness, api, World(lab, self.inbox), told, tools=self.tools or TOOLS), api

    def _work(self, lab: Lab, *, resume: bool) -> End:
        agent, api = self.agent(lab, knobs=self.knobs if resume else {})
        try:
            last, before = _to_the_end(agent, resume=resume)
        except ApiError:
            return {"status": "refused by the server", "refusals": api.refusals, "transcript": []}
        return self.end_of(lab, agent, api, before if before and before.finished else None, last)

    def end_of(self, lab: Lab, agent: Agent, api: FakeApi, finished: Checkpoint | None, last: Checkpoint) -> End:
        """What an agent has come to; ``finished`` is the end that it found, where the run was over already."""
        unknown = agent.unknown()
        for name, details in unknown:
            lab.unknown(name, **details)
        return {
            "status": last.status,
            "world": World(lab, self.inbox).view(),
            "transcript": normalised(last.messages),
            "unknown": [name for name, _ in unknown],
            "refusals": api.refusals,
            "requests_not_counted": max(0, len(lab.records(REQUEST)) - last.requests_started),
            "tokens_not_counted": max(0, paid(last.messages) - last.tokens_used),
            "turns_not_counted": sum(message["role"] == "assistant" for message in last.messages) - last.turns,
            "requests_after_end": len(api.exchanges) if finished else 0,
        }

    def check(self, lab: Lab, end: End) -> None:
        """Raise Violation unless the end is right; effects are counted by the lab itself."""
        records = self.check_account(lab, end)
        wanted = "waiting" if end["unknown"] else "done"
        demand(end["status"] == wanted, f"status is {end['status']}, expected {wanted}")
        check_world(lab, end)
        # After an honest unknown the model had to take another way to the same world.
        told = UNKNOWN_TEXT in canonical(end["transcript"])
        if not told and all(record.outcome != "unknown" for record in records):
            demand(
                view(end)["transcript"] == lab.expected["transcript"], "the transcript differs from the uncrashed one"
            )

    def check_account(self, lab: Lab, end: End) -> list[Record]:
        """Raise Violation unless transcript and counters are right and all that was acked is kept: the ledger."""
        if end["refusals"]:
            text = f"the server answered 400: {end['refusals'][0]}"
            raise Violation(text, kind="invalid-transcript")
        try:
            check_messages(end["transcript"], may_end_with_assistant=True)
        except InvalidTranscript as error:
            text = f"the saved transcript is refused: {error}"
            raise Violation(text, kind="invalid-transcript") from error
        demand(not end["requests_not_counted"], "the server counts more requests than the checkpoint")
        demand(not end["tokens_not_counted"], "the answers in the transcript cost more than the checkpoint says")
        demand(not end["turns_not_counted"], "turns is not the number of assistant messages")
        demand(not end["requests_after_end"], "a finished run asked the model again")
        return self._kept(lab)

    def _kept(self, lab: Lab) -> list[Record]:
        """The ledger, once it is sure that nothing that was acked is missing from the files."""
        promised = {"seq": 0, "ledger": 0}
        for ack in lab.acked:
            promised.update(ack)
        last = self.harness.load(lab.dir)
        path = lab.dir / LEDGER_NAME
        records, _ = read_records(path, path.read_bytes() if path.exists() else b"", seen=0)
        seq = last.seq if last else 0
        if seq < promised["seq"] or len(records) < promised["ledger"]:
            found = f"save {seq} and {len(records)} records"
            text = f"acked were save {promised['seq']} and record {promised['ledger']}, found {found}"
            raise Violation(text, kind="lost")
        return records


def check_world(lab: Lab, end: End) -> None:
    """Raise Violation unless all that overwrites, or has a key, stands in the world as after the uncrashed run."""
    for fact in STANDING_FACTS:
        found, expected = end["world"][fact], lab.expected["world"][fact]
        demand(found == expected, f"{fact}: {found!r:.80}, uncrashed {expected!r:.80}")


def tally(lab: Lab) -> None:
    """Note one request at the server: its own record, over all processes."""
    lab.effect(REQUEST, key="requests")


def _to_the_end(agent: Agent, *, resume: bool) -> tuple[Checkpoint, Checkpoint | None]:
    """The last checkpoint, and the one that was found first. Who started a run starts it again if its line broke."""
    try:
        return (agent.resume() if resume else agent.start()), agent.opened
    except IncompleteResponse:
        found = agent.opened if resume else None
    return agent.resume(), found


def paid(messages: Sequence[Message]) -> int:
    """What the answers in a transcript have cost, in tokens, by the server's own reckoning."""
    said = (at for at, message in enumerate(messages) if message["role"] == "assistant")
    return sum(sum(usage_of(messages[:at], messages[at]["content"]).values()) for at in said)


def view(end: End) -> End:
    """What counts in an end: the same, with the digest of its transcript, which is long, in its place."""
    return {**end, "transcript": hashlib.sha256(canonical(end["transcript"]).encode()).hexdigest()}


def demand(kept: bool, text: str) -> None:  # noqa: FBT001 - reads as "demand that"
    """Raise Violation with ``text`` unless it is so."""
    if not kept:
        raise Violation(text)


def describe(  # noqa: PLR0913 - all but one by keyword
    harness: Harness,
    *,
    name: str,
    persona: Persona = "careful",
    seed: int = DEFAULT_SEED,
    body_bytes: int = BODY_BYTES,
    knobs: Mapping[int, Knobs] | None = None,
) -> Subject:
    """The subject that runs the agent with ``harness`` on the inbox of ``seed``, its letters ``body_bytes`` long.

    ``knobs`` are turned at the server that a resumed agent meets.
    """
    description = Description(harness, persona, seed, make_inbox(seed, body_bytes=body_bytes), knobs or {})
    return Subject(description.run, description.resume, check=description.check, view=view, name=name)
