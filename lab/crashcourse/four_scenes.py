"""Four tools of going back, tried on a small agent: resume, rewind, fork, and Git for its source.

A scene is a few steps, in which one of them is the tool; then all lines go on. What came of it is measured: what stands
in the points, in the world, in the source. The agent is that of exercise 5.2 (:mod:`crashcourse.inside_lines`). Its
model decides at turn 4 in which words it will write, by what the user wishes then, and writes at turn 5 with the
rules that its source holds then. Git is what it does to files: a checkout puts the committed source back, and
touches nothing else.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crashcourse.folders import temporary
from crashcourse.inside_lines import Line, Script, Work
from crashcourse.lines_found import FORK, FORKS, MAIN, POINTS, files_in, points_of
from crashlab.errors import UsageError
from crashlab.lab import Lab
from longrun.subjects import REQUEST

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from crashcourse.lines_found import State

TOOLS = ("resume", "rewind", "fork", "git")
OLD, NEW = "old", "new"
LAST_TURN = 6
DECIDES_AT = 4
STEPS = ("until N", "finish", "kill at turn N", "kill in the mail", "wish", "edit", "commit", "tool")


class Killed(BaseException):
    """The process is dead; what it has not written is gone."""


@dataclass(frozen=True)
class Scene:
    """Steps, one of which is ``tool``, the turn to which rewind and fork go back, and what must be true at the end."""

    steps: Sequence[str]
    demands: Sequence[str]
    turn: int = 3


@dataclass(frozen=True)
class Voice(Script):
    """The model of the scenes: at turn 4 it takes the user's wish for its words, at turn 5 it writes in them."""

    source: Path = Path()

    def answer(self, turn: int, messages: list[Any]) -> dict[str, Any]:
        """What it says at a turn."""
        if turn == DECIDES_AT:
            return {"turn": turn, "calls": [], "words": self.words}
        calls = self.calls(turn)
        if turn == self.plan.mails_at:
            words, rules = words_of(messages), self.source.read_text()
            calls = [{**call, "body": f"{words} words, by {rules} rules"} for call in calls]
        return {"turn": turn, "calls": calls}


def words_of(messages: list[Any]) -> str:
    """The words on which a conversation has decided; nothing before it has."""
    return next((m["words"] for m in reversed(messages) if isinstance(m, dict) and "words" in m), "")


@dataclass(frozen=True)
class Store:
    """Points as exercise 5.2 wants them, for one directory of a run."""

    def save(self, line: Line, state: State) -> None:
        """Add a point."""
        folder = line.dir / POINTS
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{state['seq']:08d}.tmp").write_text(json.dumps(state))
        os.rename(folder / f"{state['seq']:08d}.tmp", folder / f"{state['seq']:08d}.json")

    def load(self, line: Line) -> State | None:
        """The head."""
        found = sorted((line.dir / POINTS).glob("*.json"))
        return json.loads(found[-1].read_bytes()) if found else None

    def ledger(self, line: Line) -> Path:
        """The one of the run."""
        return line.run / "effects.jsonl"

    def rewind(self, line: Line, turn: int) -> None:
        """A copy of the point at the end of a turn becomes the head."""
        head, copy = self._copy(line, turn)
        seq = head["seq"] + 1
        self.save(line, {**copy, "seq": seq, "timeline": f"{MAIN}@{seq}"})

    def fork(self, line: Line, name: str, turn: int) -> None:
        """A copy of that point begins a line of its own."""
        _, copy = self._copy(line, turn)
        place = Line(line.run / FORKS / name, line.run, name)
        self.save(place, {**copy, "seq": copy["parent"] + 1, "timeline": name})

    def _copy(self, line: Line, turn: int) -> tuple[State, State]:
        head = point = self.load(line)
        while point is not None and (point["turns"] != turn or point["pending"]):
            path = line.dir / POINTS / f"{point['parent'] or 0:08d}.json"
            point = json.loads(path.read_bytes()) if path.exists() else None
        if head is None or point is None:
            text = f"there is no point at the end of turn {turn} to go back to"
            raise UsageError(text)
        paid = {name: head[name] for name in ("tokens_used", "requests_started")}
        return head, {**point, **paid, "parent": point["seq"]}


@dataclass(eq=False)
class Play:
    """One scene as it is played: its directory, its world, what the user wishes, and where the next kill falls."""

    run: Path
    seed: int
    tool: str
    turn: int
    wish: str = OLD
    kill_at: str = ""
    kills: int = 0
    lab: Lab = field(init=False)

    def __post_init__(self) -> None:
        self.run.mkdir()
        self.lab = Lab(self.run, lambda *_, **__: None)
        self._write("working", OLD)
        self._write("committed", OLD)

    # --- the lab, for the agent ----------------------------------------------------------------

    @property
    def dir(self) -> Path:
        """The directory of the run."""
        return self.run

    def effect(self, name: str, *, key: str | None = None, **detail: Any) -> None:
        """Do something to the world; a kill in the mail comes when it is done and nobody has noted it."""
        self.lab.effect(name, key=key, **detail)
        self._die_at(name)

    def records(self, name: str | None = None) -> Sequence[Any]:
        """What was done to the world."""
        return self.lab.records(name)

    def save_point(self, name: str) -> None:
        """What is saved is saved."""
        self._die_at(name)

    def ack(self, value: Any) -> None:
        """A promise that nobody judges here."""

    def _die_at(self, place: str) -> None:
        if self.kill_at == place:
            self.kill_at = ""
            self.kills += 1
            raise Killed

    # --- the steps -----------------------------------------------------------------------------

    def play(self, steps: Sequence[str]) -> None:
        """All of them, and then every line goes on to its end. Raises UsageError for a step that is none."""
        for step in steps:
            self._step(step)
        self._finish()

    def _step(self, step: str) -> None:
        plain: dict[str, Callable[[], None]] = {
            "finish": self._finish,
            "kill in the mail": lambda: self._killed("send_reply"),
            "wish": lambda: setattr(self, "wish", NEW),
            "edit": lambda: self._write("working", NEW),
            "commit": lambda: self._write("committed", self.source),
            "tool": self._use,
        }
        number = step.rpartition(" ")[2]
        if step in plain:
            plain[step]()
        elif step.startswith(("until ", "kill at turn ")) and number in "123456":
            if step.startswith("until "):
                self._work().go_on(self._work().main, until=int(number))
            else:
                self._killed(f"turn{number}.{'E' if number == '6' else 'B'}")
        else:
            text = (
                f"there is no step {step!r:.60}; there are {', '.join(STEPS)}, with a turn from 1 to {LAST_TURN} for N"
            )
            raise UsageError(text)

    def _killed(self, place: str) -> None:
        self.kill_at = place
        try:
            self._finish()
        except Killed:
            return
        text = f"the run has come to its end before it could be killed at {place}"
        raise UsageError(text)

    def _finish(self) -> None:
        work = self._work()
        work.go_on(work.main)
        if work.forked():
            work.go_on(work.fork)

    def _use(self) -> None:
        work = self._work()
        if self.tool == "rewind":
            Store().rewind(work.main, self.turn)
        elif self.tool == "fork":
            Store().fork(work.main, FORK, self.turn)
        elif self.tool == "git":
            self._write("working", self._file("committed").read_text())

    def _work(self) -> Work:
        """A process of its own."""
        voice = Voice(self.seed, words=self.wish, source=self._file("working"))
        return Work(self, Store(), voice)  # type: ignore[arg-type]  # stand-ins for a lab and for a submission

    def _file(self, name: str) -> Path:
        return self.run.parent / f"{name}.txt"

    def _write(self, name: str, text: str) -> None:
        self._file(name).write_text(text)

    # --- what came of it -----------------------------------------------------------------------

    @property
    def source(self) -> str:
        """The rules that the source holds."""
        return self._file("working").read_text()

    def measured(self) -> dict[str, bool]:
        """All that can be demanded, and whether it is so."""
        heads = {name: points[-1] for name, points in points_of(files_in(self.run)).items()}
        words = {name: words_of(head["messages"]) for name, head in heads.items()}
        acts = [each.detail for each in self.lab.records() if each.name != REQUEST]
        bodies = {each["body"] for each in acts if "words" in each["body"]}
        said = {
            json.dumps(m) for head in heads.values() for m in head["messages"] if isinstance(m, dict) and "turn" in m
        }
        return {
            "one line": set(heads) == {MAIN},
            "two lines": set(heads) == {MAIN, FORK},
            "main in old words": words.get(MAIN) == OLD,
            "main in new words": words.get(MAIN) == NEW,
            "fork in new words": words.get(FORK) == NEW,
            "no act twice": len({each["act"] for each in acts}) == len(acts),
            "mails by old rules": bool(bodies) and all("old rules" in body for body in bodies),
            "mails by new rules": bool(bodies) and all("new rules" in body for body in bodies),
            "source old": self.source == OLD,
            "source new": self.source == NEW,
            "nothing paid twice": len(self.lab.records(REQUEST)) <= len(said) + self.kills,
        }


DEMANDS = (
    "one line",
    "two lines",
    "main in old words",
    "main in new words",
    "fork in new words",
    "no act twice",
    "mails by old rules",
    "mails by new rules",
    "source old",
    "source new",
    "nothing paid twice",
)
_ONE, _TWO = ("one line", "no act twice"), ("two lines", "no act twice")
SCENES: dict[str, Scene] = {
    "power_cut": Scene(("edit", "kill at turn 4", "tool"), (*_ONE, "source new", "nothing paid twice"), turn=2),
    "amid_the_mails": Scene(("edit", "kill in the mail", "tool"), (*_ONE, "source new"), turn=4),
    "second_thoughts": Scene(("edit", "until 4", "wish", "tool"), (*_ONE, "main in new words", "mails by new rules")),
    "sent_and_sorry": Scene(("edit", "finish", "wish", "tool"), (*_ONE, "main in new words", "source new")),
    "both_ways": Scene(("until 4", "wish", "tool"), (*_TWO, "main in old words", "fork in new words")),
    "what_if": Scene(("edit", "finish", "wish", "tool"), (*_TWO, "main in old words", "fork in new words")),
    "broken_rules": Scene(
        ("until 4", "edit", "tool"), (*_ONE, "main in old words", "mails by old rules", "nothing paid twice")
    ),
    "yesterdays_source": Scene(
        ("finish", "edit", "tool"), (*_ONE, "main in old words", "source old", "nothing paid twice")
    ),
}


def fails(scene: Scene, tool: str, seed: int) -> list[str]:
    """What is demanded and not so, where the scene is played with that tool. Raises UsageError where it cannot be."""
    with temporary() as folder:
        play = Play(Path(folder) / "run", seed, tool, scene.turn)
        play.play(scene.steps)
        found = play.measured()
    return [demand for demand in scene.demands if not found[demand]]


def best(scene: Scene, seed: int) -> str:
    """The one tool with which nothing fails. Raises LookupError where it is not one."""
    right = [tool for tool in TOOLS if not fails(scene, tool, seed)]
    if len(right) != 1:
        text = f"{len(right)} tools do what the scene asks for: {', '.join(right)}"
        raise LookupError(text)
    return right[0]
