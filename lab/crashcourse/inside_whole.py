"""Exercise 6.2 in the child: a whole harness of the submission's own, ``start`` and ``resume``, in five scenes.

What it keeps, and how, is its own business: it is judged by what it does to the world and to the server, by what it
promised, and by the conversation with which it comes to its end, started again from its own files.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from crashcourse.desk import desk_of
from crashcourse.inside_loop import RAN_AGAIN, Scene
from crashlab.errors import Violation
from longrun.capstone.restarts import until_it_ends
from longrun.capstone.subjects import Endless, losing_once
from longrun.errors import InvalidTranscript
from longrun.knobs import Knobs
from longrun.messages import canonical, check_messages, normalised
from longrun.resume.reconcile import ATTEMPT_LIMIT
from longrun.subjects import REQUEST, STANDING_FACTS, paid
from longrun.tools import POISON, TOOLS
from longrun.world import World

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from crashcourse.desk import Desk
    from crashcourse.inside import Later
    from crashlab.lab import Lab

End = dict[str, Any]
PLAIN, FRESH, WAITING, CAPPED, POISONED = "plain", "fresh", "waiting", "capped", "poisoned"
COUNTERS = ("turns", "tokens_used", "requests_started")
TURN_LIMIT, FEW_TURNS = 50, 3
_PAGER = "page_oncall"
_POISONED_TURN = 3
"""The last one: by then all is done, and what is left to lose is the end."""
_MOST_DEATHS = 2 * ATTEMPT_LIMIT
_FAR_BEYOND = 4
"""After so many times its cap a process is stopped: a model that never ends would keep it for ever."""
_SLACK = 2
"""So many requests more than were sent may be counted beside one a process: counted in a save that was not promised."""


@dataclass(eq=False)
class WholeDesk:
    """What the submission receives: no save and no load, those it has to bring."""

    dir: Path
    task: str
    tools: dict[str, dict[str, Any]]
    turn_limit: int
    _desk: Desk
    _lab: Any
    _person: bool = False
    _process: str = field(default_factory=lambda: os.urandom(6).hex())
    _asked: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    _acks: int = 0
    _requests: int = 0

    def ask(self, messages: list[dict[str, Any]]) -> dict[str, Any]:
        """One request to the model. Raises RuntimeError where one process asks far more often than its cap allows."""
        self._requests += 1
        if self._requests > _FAR_BEYOND * self.turn_limit:
            text = f"{self._requests} requests in one process, where a run may have {self.turn_limit} turns"
            raise RuntimeError(text)
        return self._desk.ask(messages)

    def do(self, name: str, input: Mapping[str, Any], key: str) -> str:  # noqa: A002 - the API's own word
        """Use a tool, and get the text of its result."""
        return self._desk.do(name, input, key)

    def look_up(self, name: str, input: Mapping[str, Any]) -> str | None:  # noqa: A002 - the API's own word
        """The text of the result of an act that was done, or None."""
        return self._desk.look_up(name, input)

    def ack(self, state: Mapping[str, Any]) -> None:
        """Promise that a state is saved: status and counters of it are taken down."""
        self._acks += 1
        self._desk.save_point("saved")
        said = {name: state[name] for name in ("status", *COUNTERS)}
        self._desk.ack({**said, "process": self._process})

    def unknown(self, name: str, input: Mapping[str, Any]) -> None:  # noqa: A002 - the API's own word
        """Ask a person whether this act was done."""
        if (name, dict(input)) not in self._asked:
            self._asked.append((name, dict(input)))

    def answer(self, name: str, input: Mapping[str, Any]) -> str | None:  # noqa: A002 - the API's own word
        """What a person has found out: ``done``, ``absent``, or None as long as nobody has looked."""
        if not self._person:
            return None
        return "done" if any(dict(each.detail) == dict(input) for each in self._lab.records(name)) else "absent"


@dataclass(frozen=True)
class Whole:
    """The submission in one of the scenes, with where the agent of the course comes to there."""

    start: Later
    go_on: Later
    scene: Scene
    right: End
    kind: str = PLAIN

    def run(self, lab: Lab) -> End:
        """From an empty directory to the end."""
        return self._until_it_ends(lab, self.start)

    def resume(self, lab: Lab) -> End:
        """From whatever lies there to the end; of a poisonous call the process dies, and is started again."""
        if self.kind != POISONED:
            return self._until_it_ends(lab, self.fresh if self.kind == FRESH else self.go_on)
        end, deaths = until_it_ends(lab, lambda far: self._until_it_ends(far, self.go_on), most=_MOST_DEATHS)
        if end is None:
            return {"deaths": deaths}
        for name, detail in end["unknown"]:
            lab.unknown(name, **detail)
        return {**end, "deaths": deaths}

    def fresh(self, desk: WholeDesk) -> Any:
        """A plain start; a resume where history is in its way."""
        try:
            return self.start(desk)
        except FileExistsError:
            return self.go_on(desk)

    def _until_it_ends(self, lab: Any, work: Callable[[WholeDesk], Any]) -> End:
        """One process, and once more with a person at hand where it waits for one."""
        asked = len(lab.records(REQUEST))
        desk = self._desk(lab, first=work is self.start)
        state, refusals = self._called(work, desk)
        if self.kind == WAITING and state.get("status") == "waiting":
            desk._person, desk._asked = True, []  # noqa: SLF001 - a desk is made here
            state, refusals = self._called(self.go_on, desk)
        unknown = list(desk._asked)  # noqa: SLF001 - as above
        if self.kind != POISONED or work is self.start:
            for name, detail in unknown:
                lab.unknown(name, **detail)
        messages = state.get("messages", [])
        return {
            "status": state.get("status"),
            "counters": {name: state.get(name, 0) for name in COUNTERS},
            "reason": (state.get("end") or {}).get("reason"),
            "transcript": normalised(messages) if messages else [],
            "paid": paid(messages),
            "world": World(lab, self.scene.inbox).view(),
            "unknown": unknown,
            "refusals": refusals,
            "requests": len(lab.records(REQUEST)) - asked,
            "acks": desk._acks,  # noqa: SLF001 - as above
            "process": desk._process,  # noqa: SLF001 - as above
        }

    def _called(self, work: Callable[[WholeDesk], Any], desk: WholeDesk) -> tuple[dict[str, Any], list[str]]:
        inner = desk._desk  # noqa: SLF001 - it is made here
        try:
            state = work(desk)
        except Exception:
            if not inner.refusals:
                raise
            return {"status": "refused by the server"}, inner.refusals
        if not isinstance(state, dict):
            text = f"start and resume return the state, a dictionary; this is {state!r:.60}"
            raise TypeError(text)
        return state, inner.refusals

    def _desk(self, lab: Any, *, first: bool) -> WholeDesk:
        tools, knobs = dict(TOOLS), dict[int, Knobs]()
        if self.kind == POISONED:
            tools[POISON.name] = POISON
            knobs = {} if first else {_POISONED_TURN: Knobs(poison=True, times=None)}
        if self.kind == WAITING and first:
            tools[_PAGER] = losing_once(TOOLS[_PAGER])
        scene = self.scene
        inner = desk_of(
            lab,
            seed=scene.seed,
            persona=scene.persona,
            knobs=knobs,
            with_ledger=False,
            task=scene.task,
            inbox=scene.inbox,
            tools=tools,
        )
        if self.kind == CAPPED:
            inner._model = Endless(inner._api)  # noqa: SLF001 - the model of this scene
        limit = FEW_TURNS if self.kind == CAPPED else TURN_LIMIT
        return WholeDesk(lab.dir, scene.task, inner.tools, limit, inner, lab)

    # --- judging -------------------------------------------------------------------------------

    def check(self, lab: Lab, end: End) -> None:
        """Raise Violation unless the end is right; effects are counted by the lab itself."""
        if end.get("deaths", 0) > ATTEMPT_LIMIT:
            text = f"{end['deaths']} processes died of one call, which is made again: the run never ends"
            raise Violation(text, kind="hang")
        acks = [ack for ack in lab.acked if isinstance(ack, dict) and ack.get("process") != end["process"]]
        _demand_rest(acks, end)
        _demand_sendable(end)
        self._demand_counts(lab, acks, end)
        if self.kind == CAPPED:
            _demand((end["status"], end["reason"]) == ("stopped", "turn_limit"), f"status is {end['status']!r}")
            _demand(end["counters"]["turns"] <= FEW_TURNS, f"the cap is evaded: {end['counters']['turns']} turns")
            return
        wanted = "waiting" if end["unknown"] else "done"
        _demand(end["status"] == wanted, f"status is {end['status']!r}, expected {wanted!r}")
        for fact in STANDING_FACTS:
            found, right = end["world"][fact], self.right["world"][fact]
            _demand(found == right, f"{fact}: {found!r:.80}, expected {right!r:.80}")
        if self.kind == WAITING:
            _demand(not end["unknown"], "a person has answered, and is asked again")
            for fact in ("replies", "pages"):
                found, right = end["world"][fact], self.right["world"][fact]
                text = f"{fact}: {found!r:.80}, expected {right!r:.80}: the question was forgotten"
                _demand(found == right, text, kind="missing-effect")

    def _demand_counts(self, lab: Lab, acks: list[dict[str, Any]], end: End) -> None:
        """What was asked and paid is counted, what was promised stays counted, and nothing is made up."""
        counters, requests = end["counters"], len(lab.records(REQUEST))
        answers = sum(message["role"] == "assistant" for message in end["transcript"])
        processes = len({ack["process"] for ack in acks}) + 1 + end.get("deaths", 0)
        most = requests + processes + _SLACK
        for name in COUNTERS:
            before = max((ack[name] for ack in acks), default=0)
            _demand(counters[name] >= before, f"{name} fell from {before} to {counters[name]}", kind="guard-bypassed")
        for kept, text in (
            (counters["turns"] == answers, f"turns is {counters['turns']}, messages has {answers} answers"),
            (counters["tokens_used"] >= end["paid"], f"tokens_used is {counters['tokens_used']}, paid {end['paid']}"),
            (
                counters["requests_started"] >= requests,
                f"the server counts {requests} requests, more than were started",
            ),
            (
                counters["requests_started"] <= most,
                f"{counters['requests_started']} requests are counted, of {requests}",
            ),
        ):
            _demand(kept, text, kind="guard-bypassed")


def _demand_rest(acks: list[dict[str, Any]], end: End) -> None:
    """A run that was over must be left alone."""
    if any(ack["status"] in ("done", "stopped") for ack in acks) and (end["requests"] or end["acks"]):
        text = f"the run was over, and resume asked {end['requests']} times more and saved {end['acks']} times"
        raise Violation(text, kind=RAN_AGAIN)


def _demand_sendable(end: End) -> None:
    if end["refusals"]:
        text = f"the server answered 400: {end['refusals'][0]}"
        raise Violation(text, kind="invalid-transcript")
    try:
        check_messages(end["transcript"], may_end_with_assistant=True)
    except InvalidTranscript as error:
        text = f"the messages of the end would be refused: {error}"
        raise Violation(text, kind="invalid-transcript") from error


def _demand(kept: bool, text: str, *, kind: str = "diverged") -> None:  # noqa: FBT001 - reads as "demand that"
    if not kept:
        raise Violation(text, kind=kind)


def view(end: End) -> End:
    """What counts in an end, short; which process came to it does not."""
    short = {name: value for name, value in end.items() if name != "process"}
    return {**short, "transcript": canonical_digest(end.get("transcript", []))}


def canonical_digest(messages: list[dict[str, Any]]) -> str:
    """What tells two conversations apart."""
    return hashlib.sha256(canonical(messages).encode()).hexdigest()
