"""The four scenes that no plain run shows, each as a subject: a fresh start, a question, a cap, a poisonous call.

Each describes the same agent as :mod:`longrun.subjects`, met by something else than a kill alone, and what must be
true at its end. The person, the pager that loses a call and the model that never comes to an end are outside of the
agent: they are played here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from crashlab.errors import Violation
from crashlab.subject import Subject
from longrun import questions
from longrun.capstone.restarts import until_it_ends
from longrun.errors import HistoryExists, OutcomeUnknown
from longrun.fake_api import usage_of
from longrun.inbox import DEFAULT_SEED, SHORT_BODY_BYTES, make_inbox
from longrun.knobs import Knobs
from longrun.resume.reconcile import ATTEMPT_LIMIT
from longrun.subjects import REQUEST, Description, check_world, demand, view
from longrun.tools import POISON, TOOLS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from crashlab.lab import Lab
    from longrun.fake_api import FakeApi
    from longrun.harness import Harness
    from longrun.loop import Agent
    from longrun.personas import Persona
    from longrun.protocol import Checkpoint
    from longrun.questions import Question
    from longrun.subjects import End
    from longrun.tools import Tool
    from longrun.world import World

PAGER = "page_oncall"
POISONED_TURN = 7
"""The last one: by then all is done, and what is left to lose is the end."""
MOST_DEATHS = 2 * ATTEMPT_LIMIT
"""After so many dead processes a run is taken never to end: twice what a harness with a limit needs."""


def _inner(harness: Harness, persona: Persona, *, knobs: Mapping[int, Knobs] | None = None) -> Description:
    return Description(
        harness, persona, DEFAULT_SEED, make_inbox(DEFAULT_SEED, body_bytes=SHORT_BODY_BYTES), knobs or {}
    )


def _found_finished(agent: Agent) -> Checkpoint | None:
    """The end that this process found, where the run was over and nobody had answered anything."""
    found = agent.opened
    return found if found is not None and found.status in ("done", "stopped") else None


# --- a fresh start over a stored run ----------------------------------------------------------------


@dataclass(frozen=True)
class StartedAgain:
    """After a crash the run is started plainly, as on the first day, and resumed only where that is refused."""

    inner: Description

    def resume(self, lab: Lab) -> End:
        """A plain start; a resume where history is in the way."""
        agent, api = self.inner.agent(lab, knobs={})
        try:
            last, finished = agent.start(), None
        except HistoryExists:
            last = agent.resume()
            finished = _found_finished(agent)
        return self.inner.end_of(lab, agent, api, finished, last)


def started_again(harness: Harness, *, name: str, persona: Persona = "careful") -> Subject:
    """The agent, started plainly after each crash."""
    inner = _inner(harness, persona)
    return Subject(inner.run, StartedAgain(inner).resume, check=inner.check, view=view, name=name)


# --- a question for a person ------------------------------------------------------------------------


@dataclass(frozen=True)
class Asking:
    """The pager loses the first call, and its answer. The run comes to a question; a person looks, and answers.

    A person is there in each process, and tells the truth: so nothing is unknown at any end. ``desk`` is the harness
    of the program that takes the answers.
    """

    inner: Description
    desk: Harness

    def run(self, lab: Lab) -> End:
        """From an empty directory to the question, and past its answer to the end."""
        return self._work(replace(self.inner, tools={**TOOLS, PAGER: losing_once(TOOLS[PAGER])}), lab, resume=False)

    def resume(self, lab: Lab) -> End:
        """From whatever is stored to the end. The pager is well by now."""
        return self._work(self.inner, lab, resume=True)

    def _work(self, inner: Description, lab: Lab, *, resume: bool) -> End:
        agent, api = inner.agent(lab, knobs={})
        last = agent.resume() if resume else agent.start()
        finished = _found_finished(agent)
        while last.status == "waiting" and (asked := agent.questions()):
            for question in asked:
                said = questions.answer(lab.dir, self.desk, question.act, _truth(lab, question))
                lab.ack({"ledger": said.n})
            last = agent.resume()
        return inner.end_of(lab, agent, api, finished, last)

    def check(self, lab: Lab, end: End) -> None:
        """Raise Violation unless the run is done, everyone was asked, and the world is that of the uncrashed run."""
        records = self.inner.check_account(lab, end)
        latest = {record.key: record for record in records}
        for record in latest.values():
            if record.outcome == "unknown" and not end["unknown"]:
                text = f"nobody knows whether {record.tool} happened, and nobody is asked: the question is forgotten"
                raise Violation(text, kind="missing-effect")
        demand(end["status"] == "done", f"status is {end['status']}, though a person has answered")
        check_world(lab, end)
        for fact in ("replies", "pages"):
            demand(end["world"][fact] == lab.expected["world"][fact], f"{fact} are {end['world'][fact]}")


def _truth(lab: Lab, question: Question) -> questions.Answer:
    happened = any(dict(each.detail) == question.input for each in lab.records(question.tool))
    return "done" if happened else "absent"


def losing_once(tool: Tool) -> Tool:
    """The tool, its first call lost on the way: nothing is done, and nothing is heard of it."""
    lost: list[dict[str, Any]] = []

    def run(world: World, given: dict[str, Any], key: str) -> str:
        if not lost:
            lost.append(given)
            text = f"{tool.name}: no answer came"
            raise OutcomeUnknown(text)
        return tool.run(world, given, key)

    return replace(tool, run=run)


def asking(harness: Harness, *, desk: Harness, name: str, persona: Persona = "careful") -> Subject:
    """The agent with a pager that loses a call, and a person who answers at a ``desk`` of their own."""
    scene = Asking(_inner(harness, persona), desk)
    return Subject(scene.run, scene.resume, check=scene.check, view=view, name=name)


# --- a cap ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Endless:
    """A model that lists the tickets, again and again. What it says costs what it would cost at the server."""

    api: FakeApi

    def reply(self, request: dict[str, Any]) -> dict[str, Any]:
        """One more look at the list."""
        again = {"type": "tool_use", "id": self.api.new_id("toolu"), "name": "list_tickets", "input": {}}
        usage = usage_of(request["messages"], [again])
        return {**self.api.reply(request), "content": [again], "stop_reason": "tool_use", "usage": usage}


@dataclass(frozen=True)
class Capped:
    """A model that never ends, and a harness with a cap: the run is stopped, after a crash no later than without."""

    inner: Description

    def run(self, lab: Lab) -> End:
        """From an empty directory to the cap."""
        return self._work(lab, resume=False)

    def resume(self, lab: Lab) -> End:
        """From whatever is stored to the cap."""
        return self._work(lab, resume=True)

    def _work(self, lab: Lab, *, resume: bool) -> End:
        agent, api = self.inner.agent(lab, knobs={})
        agent.model = Endless(api)
        last = agent.resume() if resume else agent.start()
        return {
            **self.inner.end_of(lab, agent, api, _found_finished(agent), last),
            "reason": (last.end or {}).get("reason"),
            "turns": last.turns,
            "requests": len(lab.records(REQUEST)),
            "processes": last.writer_epoch,
        }

    def check(self, lab: Lab, end: End) -> None:
        """Raise Violation unless its cap has stopped it, with no more turns, and one more request a crash at most."""
        self.inner.check_account(lab, end)
        expected = lab.expected
        demand(end["status"] == "stopped", f"status is {end['status']}, expected stopped")
        demand(end["reason"] == expected["reason"], f"stopped by {end['reason']}, expected {expected['reason']}")
        most = {"turns": expected["turns"], "requests": expected["requests"] + end["processes"] - 1}
        for what, count in most.items():
            demand(end[what] <= count, f"the cap is evaded: {end[what]} {what}, at most {count} are right")


def capped(harness: Harness, *, name: str, persona: Persona = "careful") -> Subject:
    """The agent under the cap of ``harness``, with a model that never ends."""
    scene = Capped(_inner(harness, persona))
    return Subject(scene.run, scene.resume, check=scene.check, view=view, name=name)


# --- a call that kills its process ------------------------------------------------------------------


@dataclass(frozen=True)
class Poisoned:
    """The model that a resumed agent meets names a call that kills the process that makes it, each time it is made."""

    inner: Description

    def run(self, lab: Lab) -> End:
        """From an empty directory to the end: nothing poisonous is named before a crash."""
        return {**self.inner.run(lab), "deaths": 0}

    def resume(self, lab: Lab) -> End:
        """Started again after each death, as by a service manager, until it ends; or until it never will."""
        end, deaths = until_it_ends(lab, self.inner.resume, most=MOST_DEATHS)
        return {**(end or {"status": "never ended", "transcript": []}), "deaths": deaths}

    def check(self, lab: Lab, end: End) -> None:
        """Raise Violation unless it ended after three deaths or fewer, with the world as after the uncrashed run."""
        if end["deaths"] > ATTEMPT_LIMIT:
            text = f"{end['deaths']} processes died of one call, which is made again: the run never ends"
            raise Violation(text, kind="hang")
        self.inner.check_account(lab, end)
        wanted = "waiting" if end["unknown"] else "done"
        demand(end["status"] == wanted, f"status is {end['status']}, expected {wanted}")
        check_world(lab, end)


def poisoned(harness: Harness, *, name: str, persona: Persona = "careful") -> Subject:
    """The agent, to which a poisonous call is named after a crash."""
    knobs = {POISONED_TURN: Knobs(poison=True, times=None)}
    inner = replace(_inner(harness, persona, knobs=knobs), tools={**TOOLS, POISON.name: POISON})
    scene = Poisoned(inner)
    return Subject(scene.run, scene.resume, check=scene.check, view=view, name=name)
