"""Exercise 5.2 in the child: a small agent whose points, rewinds and forks are the submission's.

The loop, its model and its gate are here; what is kept, and how one goes back, is the submission's. The model is a
script: what it says follows from the turn, so a line that went back names the same acts again. What comes of it is
read from the points that lie there and from the lab's record of effects (:mod:`crashcourse.lines_found`).
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from crashcourse.lines_found import FORK, FORKS, LONG, MAIN, POINTS, SHORT, broken, digest, files_in, points_of
from crashlab.errors import Violation
from longrun.errors import LeaseHeld
from longrun.files import remove_temporary, sync_directory, write_all
from longrun.lease import Lease
from longrun.messages import canonical
from longrun.subjects import REQUEST

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from crashcourse.inside import Later
    from crashcourse.lines_found import Plan, State
    from crashlab.lab import Lab

End = dict[str, Any]
CONFLICT = "conflict: this act was done already with another body, and is not done twice"


# --- the agent ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Line:
    """One line of the run, as the submission sees it: its directory, that of the run, and its name."""

    dir: Path
    run: Path
    name: str


@dataclass(frozen=True)
class Script:
    """The model: what it does follows from the turn alone. ``words`` is how it puts its mails."""

    seed: int
    plan: Plan = LONG
    words: str = "We are sorry."

    def answer(self, turn: int, _messages: list[Any]) -> dict[str, Any]:
        """What it says at a turn."""
        return {"turn": turn, "calls": self.calls(turn)}

    def calls(self, turn: int) -> list[dict[str, str]]:
        """The acts that it names at a turn."""
        chance = random.Random(self.seed)  # noqa: S311 - the same twin for the same seed
        first, second = chance.sample(range(100, 1000), 2)
        if turn == self.plan.case_at:
            return [_call(f"T-{first}/open_case", f"case for T-{first}")]
        if turn == self.plan.mails_at:
            return [_call(f"T-{each}/send_reply", f"{self.words} You get {10 * each} yen.") for each in (second, first)]
        return []


def _call(act: str, body: str) -> dict[str, str]:
    return {"act": act, "body": body}


def cost(messages: list[Any]) -> int:
    """What an answer costs behind these messages."""
    return 10 + 3 * len(messages)


@dataclass(frozen=True)
class Functions:
    """What the submission brings."""

    save: Later
    load: Later
    rewind: Later
    fork: Later
    ledger: Later


@dataclass(eq=False)
class Work:
    """One process at work on the lines of one run."""

    lab: Lab
    use: Functions
    script: Script
    told: list[str] = field(default_factory=list)

    @property
    def main(self) -> Line:
        """The line that was there first."""
        return Line(self.lab.dir, self.lab.dir, MAIN)

    @property
    def fork(self) -> Line:
        """The line of the fork, whether or not there is one yet."""
        return Line(self.lab.dir / FORKS / FORK, self.lab.dir, FORK)

    def rewound(self) -> bool:
        """Whether the main line went back already."""
        return any(point["timeline"] != MAIN for point in points_of(files_in(self.lab.dir)).get(MAIN, []))

    def forked(self) -> bool:
        """Whether there is a fork already."""
        return FORK in points_of(files_in(self.lab.dir))

    # --- the steps -----------------------------------------------------------------------------

    def go_back(self) -> None:
        """Rewind the main line, and promise that it is done."""
        with self._held(self.main):
            if self.rewound():
                return  # somebody else has done it meanwhile
            self.use.rewind(self.main, self.script.plan.back_to)
            self._tell("rewind", self.use.load(self.main))

    def branch(self) -> None:
        """Fork at the same turn, and promise that it is done."""
        with self._held(self.fork):
            if self.forked():
                return
            self.use.fork(self.main, FORK, self.script.plan.back_to)
            self._tell("fork", self.use.load(self.fork))

    def go_on(self, line: Line, *, until: int | None = None) -> None:
        """One line to its end, or to the end of a turn. Raises LeaseHeld while another process has it."""
        until = until or self.script.plan.last
        with self._held(line):
            found = self.use.load(line)
            folder = line.dir / POINTS
            if folder.is_dir():
                remove_temporary(folder)
            state = self._opened(line, found)
            if state is None or state["turns"] >= until:
                return
            self._save(line, state, "R")
            begun = [call["act"] for call in state["pending"]]
            while True:
                if state["pending"]:
                    self._close(line, state, begun)
                if state["status"] == "done" or state["turns"] >= until:
                    return
                begun = []
                self._ask(line, state)

    def _opened(self, line: Line, found: State | None) -> State | None:
        """The state with which a process goes on: a point of its own, and the next request counted."""
        if found is None:
            start = {"parent": None, "seq": 0, "timeline": line.name, "status": "running", "messages": ["the task"]}
            return {**start, "pending": [], "turns": 0, "tokens_used": 0, "requests_started": 1, "ledger_seen": 0}
        if found["status"] == "done":
            return None
        return {**found, "requests_started": found["requests_started"] + (not found["pending"])}

    def _ask(self, line: Line, state: State) -> None:
        self.lab.effect(REQUEST, key="requests")
        turn, last = state["turns"] + 1, self.script.plan.last
        answer = self.script.answer(turn, state["messages"])
        calls = answer["calls"]
        state["tokens_used"] += cost(state["messages"])
        state.update(turns=turn, messages=[*state["messages"], answer], pending=calls)
        if turn == last:
            state["status"] = "done"
        if not calls and turn != last:
            state["requests_started"] += 1
        self._save(line, state, f"turn{turn}.{'E' if turn == last else 'A' if calls else 'B'}")

    def _close(self, line: Line, state: State, begun: list[str]) -> None:
        results = [self._done(line, call, call["act"] in begun) for call in state["pending"]]
        state.update(messages=[*state["messages"], {"results": results}], pending=[])
        state["requests_started"] += 1
        self._save(line, state, f"turn{state['turns']}.B")

    def _save(self, line: Line, state: State, place: str) -> None:
        state.update(seq=state["seq"] + 1, parent=state["seq"] or None)
        state["ledger_seen"] = len(_records(self.use.ledger(line)))
        self.use.save(line, json.loads(canonical(state)))
        self._tell(place, state)

    def _tell(self, place: str, state: State) -> None:
        self.lab.save_point(place)
        self.told.append(digest(state))
        self.lab.ack({"point": self.told[-1]})

    # --- the gate ------------------------------------------------------------------------------

    def _done(self, line: Line, call: dict[str, str], begun: bool) -> str:  # noqa: FBT001 - what is known of it
        """The result of one act: from the ledger, by looking it up where it was begun, or by doing it."""
        path = self.use.ledger(line)
        with _alone(path) as descriptor:
            known = {record["act"]: record for record in _records(path)}.get(call["act"])
            if known is not None:
                return str(known["result"]) if known["body"] == call["body"] else CONFLICT
            name = call["act"].partition("/")[2]
            there = [each for each in self.lab.records(name) if each.detail["act"] == call["act"]]
            if there and (begun or call["act"] in self._begun_elsewhere(line)):
                record = {**call, "body": there[0].detail["body"], "result": f"done: {call['act']}"}
            else:
                self.lab.effect(name, **call)
                record = {**call, "result": f"done: {call['act']}"}
            write_all(descriptor, canonical(record).encode() + b"\n")
            os.fsync(descriptor)
            self.lab.save_point("ledger")
        return str(record["result"]) if record["body"] == call["body"] else CONFLICT

    def _begun_elsewhere(self, line: Line) -> list[str]:
        """What the other line may have begun, by its newest point."""
        other = self.fork if line.name == MAIN else self.main
        points = points_of(files_in(other.run)).get(other.name, [])
        return [call["act"] for call in points[-1]["pending"]] if points else []

    @contextlib.contextmanager
    def _held(self, line: Line) -> Iterator[None]:
        line.dir.mkdir(parents=True, exist_ok=True)
        with Lease.take(line.dir, epoch_of=lambda _directory: None):
            yield


@contextlib.contextmanager
def _alone(path: Path) -> Iterator[int]:
    """The ledger, open and locked. Raises LeaseHeld where another line is amid an act."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            text = f"{path}: another line is amid an act"
            raise LeaseHeld(text) from error
        sync_directory(path.parent)
        whole = path.read_bytes()
        os.ftruncate(descriptor, whole.rfind(b"\n") + 1)
        yield descriptor
    finally:
        os.close(descriptor)


def _records(path: Path) -> list[dict[str, str]]:
    """The whole records of a ledger."""
    data = path.read_bytes() if path.exists() else b""
    return [json.loads(line) for line in data[: data.rfind(b"\n") + 1].splitlines()]


# --- the workloads --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Lines:
    """Run, rewind, run, fork there too, run the fork. With ``beside`` the fork is made early, and there is no rewind.

    ``waived`` are the kinds of what the run without a crash has shown already: they would hide all else.
    """

    use: Functions
    seed: int
    beside: bool = False
    waived: frozenset[str] = frozenset()

    @property
    def plan(self) -> Plan:
        """What the model does when."""
        return SHORT if self.beside else LONG

    def run(self, lab: Lab) -> End:
        """From an empty directory to the end."""
        return {**self._work(lab, self._steps), "own": True}

    def resume(self, lab: Lab) -> End:
        """From whatever lies there. Of lines that are beside each other it takes the fork first."""
        return self._work(lab, self._fork_first if self.beside else self._steps)

    def _work(self, lab: Lab, steps: Any) -> End:
        work = Work(lab, self.use, Script(self.seed, self.plan))
        steps(work)
        return {"told": work.told}

    def _steps(self, work: Work) -> None:
        if self.beside:
            if not work.forked():
                work.go_on(work.main, until=self.plan.back_to)
                work.branch()
            work.go_on(work.main)
            work.go_on(work.fork)
            return
        if not work.rewound():
            work.go_on(work.main)
            work.go_back()
        work.go_on(work.main)
        if not work.forked():
            work.branch()
        work.go_on(work.fork)

    def _fork_first(self, work: Work) -> None:
        if work.forked():
            work.go_on(work.fork)
        self._steps(work)

    def check(self, lab: Lab, end: End) -> None:
        """Raise Violation unless all is right. The run without a crash is judged elsewhere, from its record."""
        if end.get("own"):
            return
        acts = [each.detail["act"] for each in lab.records() if each.name != REQUEST]
        promised = [*(ack["point"] for ack in lab.acked), *end["told"]]
        wrong = broken(
            files_in(lab.dir), promised, acts, len(lab.records(REQUEST)), plan=self.plan, rewound=not self.beside
        )
        for kind, text in wrong.items():
            if text and kind not in self.waived:
                raise Violation(text, kind=kind)


@dataclass(frozen=True)
class OtherWords:
    """Run, rewind, and then a model that puts the same acts in other words."""

    use: Functions
    seed: int

    def __call__(self, lab: Lab) -> End:
        """The last results of turn 5."""
        Lines(self.use, self.seed)._work(lab, self._first)  # noqa: SLF001 - its own module
        work = Work(lab, self.use, Script(self.seed, words="Please excuse us."))
        work.go_on(work.main)
        return {}

    def _first(self, work: Work) -> None:
        work.go_on(work.main)
        work.go_back()
