"""The harness of exercise 6.1: eight of its pieces have one fault each, so that it fails in every family.

Each faulty piece is one that a lesson has shown alone. A mend is that piece in its correct form, and leaves the other
seven as they are. The work is the brief scene of lesson 4, with the hasty model.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from crashcourse.inside_loop import Scene
from crashlab.subject import Subject
from longrun.booking import Gain, add, book
from longrun.capstone import naive_no_lease
from longrun.checkpoint import correct, naive_no_checksum, naive_no_dirsync
from longrun.effects import acting, naive_blank_on_damage, naive_id_key
from longrun.inbox import DEFAULT_SEED
from longrun.resume import naive_unsaved_reconcile
from longrun.subjects import Description, view

if TYPE_CHECKING:
    from crashlab.lab import Lab
    from longrun.harness import Harness
    from longrun.loop import Agent
    from longrun.messages import Block
    from longrun.protocol import Checkpoint, OpenCall
    from longrun.subjects import End
    from longrun.tools import Tool


def late_price(state: Checkpoint, gain: Gain, point: str) -> Checkpoint:
    """What the first answer has cost is booked with its results (B) and not with itself (A)."""
    if point == "A" and not state.turns:
        return add(state, replace(gain, usage={}))
    return add(state, Gain(usage=gain.usage)) if point == "B" and state.turns == 1 else book(state, gain, point)


def noted_first(agent: Agent, call: OpenCall, tool: Tool, place: str) -> Block:
    """What nobody can look up is recorded before it is done, so that it is never done twice."""
    if tool.find is not None:
        return acting.act(agent, call, tool, place)
    agent.mark(call, place)
    noted = agent.record(call, "done", f"{tool.name}: done", place)
    agent.do(call, tool)
    return noted


HARNESS = replace(
    correct.HARNESS,
    save=naive_no_dirsync.save,
    load=naive_no_checksum.load,
    book=late_price,
    key=naive_id_key.key,
    act=noted_first,
    ledger=naive_blank_on_damage.ledger,
    reconcile=naive_unsaved_reconcile.reconcile,
    lease=naive_no_lease.Unowned,
)
FAULTY = ("book", "key", "save", "act", "load", "ledger", "reconcile", "lease")
"""The pieces, in the order in which the cases count them."""


@dataclass(frozen=True)
class Audited:
    """The agent with that harness, in the brief scene: its task says what is done already."""

    description: Description
    task: str

    def run(self, lab: Lab) -> End:
        """From an empty directory to the end."""
        return self._work(lab, resume=False)

    def resume(self, lab: Lab) -> End:
        """From whatever lies there to the end."""
        return self._work(lab, resume=True)

    def _work(self, lab: Lab, *, resume: bool) -> End:
        agent, api = self.description.agent(lab, knobs={})
        last = agent.resume(self.task) if resume else agent.start(self.task)
        found = agent.opened
        return self.description.end_of(lab, agent, api, found if found and found.finished else None, last)


def audited(seed: int = DEFAULT_SEED, *, mended: str = "") -> Subject:
    """The subject, with one piece mended if it is named."""
    harness: Harness = HARNESS
    if mended:
        right: dict[str, Any] = {mended: getattr(correct.HARNESS, mended)}
        harness = replace(harness, **right)
    scene = Scene(seed, "hasty", brief=True)
    description = Description(harness, scene.persona, seed, scene.inbox)
    work = Audited(description, scene.task)
    return Subject(work.run, work.resume, check=description.check, view=view, name="audited")


subject = audited()
