"""The three levels as subjects of crashlab, and what each loses: ``python -m longrun.eventlog.levels`` prints it.

The work, its end and its judge are the same for all. A message that was acked must be there again, the refund must be
there once, and a person is asked about it only where it may have happened: the last is what messages cannot tell.

A cell of the table says how many of the states that were tried are right, and what the others came to. It is of this
small work and of what a small budget reaches; it measures no file system.
"""

from __future__ import annotations

import tempfile
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crashlab import Budget, explore
from crashlab.errors import Violation
from crashlab.subject import Subject
from longrun.errors import InvalidTranscript
from longrun.eventlog.levels.log import FactLog
from longrun.eventlog.levels.messages import MessageList
from longrun.eventlog.levels.tree import EntryTree
from longrun.eventlog.levels.work import Level, is_unknown, work
from longrun.eventlog.project import request_sha256
from longrun.messages import canonical, check_messages

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from crashlab.lab import Lab
    from crashlab.report.model import Report
    from longrun.messages import Block

End = dict[str, Any]
PATH = "longrun.eventlog.levels.subjects"
FAULTS = ("kill", "power", "error", "damage:bit", "damage:zeros", "recovery")
SMALL = Budget(subset=2, sample=0, nested=4, anew=1, real_kills=1, violations=2, time_s=300.0)
IS_NEXT = "the refund is next"
"""Acked right before it: without this ack no process had begun it."""


@dataclass(frozen=True, slots=True)
class Telling:
    """A level that tells the lab of each message once it is kept."""

    level: Level
    lab: Lab

    def say(self, text: str) -> None:
        """Kept, then acked."""
        self.level.say(text)
        self._told()

    def answer(self, content: list[Block]) -> None:
        """Kept, then acked."""
        self.level.answer(content)
        self._told()

    def result(self, call: Block, block: Block) -> None:
        """Kept, then acked."""
        self.level.result(call, block)
        self._told()

    def _told(self) -> None:
        self.lab.ack(canonical(self.level.history()[-1]))

    def __getattr__(self, name: str) -> Any:
        """All else is the level's own."""
        return getattr(self.level, name)


@dataclass(frozen=True)
class Description:
    """The work at one level, under a :class:`crashlab.Lab`. ``open`` is how a process gets hold of what is kept."""

    open: Callable[[Path], AbstractContextManager[Level]]

    def run(self, lab: Lab) -> End:
        """The workload, and the recovery from whatever lies there."""
        with self.open(lab.dir) as level:
            work(Telling(level, lab), lambda: lab.effect("refund", ticket="T-1"), lambda _: lab.ack(IS_NEXT))
            history = level.history()
            if is_unknown(history):
                lab.unknown("refund", ticket="T-1")
            return {
                "transcript": level.messages(),
                "history": [canonical(each) for each in history],
                "asks a person": is_unknown(history),
            }

    @staticmethod
    def check(lab: Lab, end: End) -> None:
        """Raise Violation unless all that was acked is there, and nobody is asked in vain."""
        try:
            check_messages(end["transcript"], may_end_with_assistant=True)
        except InvalidTranscript as error:
            text = f"the transcript is refused: {error}"
            raise Violation(text, kind="invalid-transcript") from error
        gone = [each for each in lab.acked if each != IS_NEXT and each not in end["history"]]
        if gone:
            text = f"a message that was acked is gone: {gone[0]}"
            raise Violation(text, kind="lost")
        begun = IS_NEXT in lab.acked or lab.effects  # a recovery may have begun it, and have died of a read error
        if end["asks a person"] and not begun:
            text = "a person is asked about a refund that no process had begun"
            raise Violation(text, kind="lost")


def view(end: End) -> End:
    """What counts in an end: that the work came to it. A crash may add messages, and may make a person decide."""
    return {"last": end["transcript"][-1]}


def level_of(open_level: Callable[[Path], AbstractContextManager[Level]], *, name: str) -> Subject:
    """The subject of one level."""
    description = Description(open_level)
    return Subject(description.run, description.run, check=description.check, view=view, name=name)


OPENERS: dict[str, Callable[[Path], AbstractContextManager[Level]]] = {
    "messages": lambda directory: nullcontext(MessageList(directory)),
    "tree": lambda directory: nullcontext(EntryTree(directory)),
    "log": FactLog,
}
messages = level_of(OPENERS["messages"], name="levels/messages")
tree = level_of(OPENERS["tree"], name="levels/tree")
log = level_of(OPENERS["log"], name="levels/log")
LEVELS = {"messages": messages, "tree": tree, "log": log}


# --- the table -------------------------------------------------------------------------------------


def cell(report: Report) -> str:
    """How many states are right, and what the others came to."""
    judged, wrong = (sum(getattr(each, name) for each in report.faults) for name in ("judged", "violation"))
    if report.verdict == "unmeasured":
        return f"unmeasured: {report.unmeasured[0].code}"
    if not wrong:
        refused = sum(each.refused for each in report.faults)
        return f"survives {judged}" + (f", of which {refused} refused" if refused else "")
    what = sorted({_what(each.summary, each.kind) for each in report.findings})
    return f"loses in {wrong} of {judged}: {', '.join(what)}"


def _what(summary: str, kind: str) -> str:
    """A finding in two words."""
    return "outcome class" if "no process had begun" in summary else {"lost": "lost message"}.get(kind, kind)


def rows(
    levels: Iterable[str] = tuple(LEVELS), faults: Sequence[str] = FAULTS, *, budget: Budget = SMALL
) -> Iterator[tuple[str, str, str]]:
    """Level, fault, and what came of it, one after the other."""
    with tempfile.TemporaryDirectory() as out:
        for name in levels:
            for fault in faults:
                yield name, fault, cell(explore(f"{PATH}:{name}", faults=fault, budget=budget, out=out))


def uncrashed(name: str) -> str:
    """What a level keeps of a run that nothing befell: requests that can be made again, and the price of a branch."""
    with tempfile.TemporaryDirectory() as folder, OPENERS[name](Path(folder)) as level:
        counted = _Counted(level, Path(folder))
        work(counted, lambda: "refund-1", lambda _: None)
        again = [request_sha256(request) for request in level.requests()]
        same = len([digest for digest in counted.asked if digest in again])
        return (
            f"{same} of {len(counted.asked)} requests can be made again; to go back took {counted.branch_bytes} bytes"
        )


class _Counted:
    """A level whose requests and whose way back are looked at."""

    def __init__(self, level: Level, directory: Path) -> None:
        self._level, self._directory = level, directory
        self.asked: list[str] = []
        self.branch_bytes = 0

    def asks(self, request: dict[str, Any]) -> None:
        self.asked.append(request_sha256(request))
        self._level.asks(request)

    def go_back(self, text: str) -> None:
        before = self._bytes()
        self._level.go_back(text)
        self.branch_bytes = self._bytes() - before

    def _bytes(self) -> int:
        return sum(path.stat().st_size for path in self._directory.rglob("*") if path.is_file())

    def __getattr__(self, name: str) -> Any:
        return getattr(self._level, name)
