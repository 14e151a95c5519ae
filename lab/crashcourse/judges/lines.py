"""Exercise 5.2: points, ``rewind`` and ``fork``, under a small agent that runs, goes back, runs, forks and runs.

The lines of the run without a crash are judged by the files that it left, all others by what the lab finds after the
recovery. The race has a workload of its own, in which the run and its fork both have their mails still to send.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from crashcourse.inside import Later
from crashcourse.inside_lines import Functions, Lines, OtherWords
from crashcourse.judging import failed, guarded, outcomes
from crashcourse.lines_found import FORKS, POINTS, broken, twice
from crashcourse.result import Outcome, Shown
from crashlab import Subject
from crashlab import trace as t
from crashlab.errors import UsageError
from crashlab.tree import File
from longrun.subjects import REQUEST

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from crashcourse.judging import Bench
    from crashlab.observation import RawRecording

CASES = {"duplicate-effect": "once", "lost": "lines", "guard-bypassed": "count"}
KINDS = {
    "missing-effect@kill": "once",
    "missing-effect@recovery": "once",
    "duplicate-effect@kill": "once",
    "duplicate-effect@recovery": "once",
    "guard-bypassed": "count",
}
KINDS |= {f"lost@{fault}": "lines" for fault in ("kill", "recovery")}
FAULTS = {"kill": "kill", "recovery": "nested"}
NESTED, RACES = 2, 2
"""Per recovery so many second crashes, and so many interleavings of two owners that are both stopped."""


def judge(bench: Bench) -> list[Outcome]:
    """All cases of the exercise."""
    use = Functions(*(Later(str(bench.file), name) for name in ("save", "load", "rewind", "fork", "ledger")))
    try:
        recording = bench.recorded(_subject(bench, Lines(use, bench.seed)))
        wrong = _uncrashed(recording)
        if wrong["diverged"]:
            return failed(bench.exercise, "end", wrong["diverged"])
        shown = {CASES[kind]: _shown(CASES[kind], kind, text) for kind, text in wrong.items() if text}
        found = [Outcome(case="end", family="end", verdicts={"consistent": 1}), *shown.values()]
        lines = Lines(use, bench.seed, waived=frozenset(kind for kind, text in wrong.items() if text))
        found += [each for each in _crashed(bench, lines, shown.keys()) if each.case not in shown]
        if bench.wants("conflict"):
            found.append(_conflict(bench, use))
        if bench.wants("race"):
            found += _race(bench, use)
    except UsageError as error:
        return failed(bench.exercise, "end", str(error))
    return found


def _subject(bench: Bench, lines: Lines) -> Subject:
    return Subject(lines.run, lines.resume, check=lines.check, name=bench.exercise.slug)


def _uncrashed(recording: RawRecording) -> dict[str, str]:
    """What is wrong about the run without any crash, by kind."""
    effects = [op for op in recording.ops if isinstance(op, t.Effect)]
    acts = [op.detail["act"] for op in effects if op.name != REQUEST]
    promised = [op.value["point"] for op in recording.ops if isinstance(op, t.Ack)]
    return broken(_files(recording), promised, acts, len(effects) - len(acts))


def _shown(case: str, kind: str, text: str) -> Outcome:
    """A case that is lost without any crash."""
    return Outcome(
        case=case, family="end", verdicts={"violation": 1}, finding=Shown(kind=kind, crash_point="end", found=text)
    )


def _crashed(bench: Bench, lines: Lines, shown: Collection[str]) -> list[Outcome]:
    """The cases that crashes show, where others are wanted than those that are ``shown`` already."""
    faults = {name: case for name, case in FAULTS.items() if bench.wants(case)}
    if any(bench.wants(case) and case not in shown for case in KINDS.values()):
        faults = {"kill": "kill", **faults}
    if not faults:
        return []
    budget = dataclasses.replace(bench.budget, nested=min(NESTED, bench.budget.nested))
    report = bench.explore(_subject(bench, lines), ",".join(faults), budget=budget)
    return guarded(bench.exercise, report, outcomes(report, faults, kinds=KINDS))


def _race(bench: Bench, use: Functions) -> Iterator[Outcome]:
    subject = _subject(bench, Lines(use, bench.seed, beside=True))
    budget = dataclasses.replace(bench.budget, sample=min(RACES, bench.budget.sample))
    return outcomes(bench.explore(subject, "race", budget=budget), {"race": "race"})


def _files(recording: RawRecording) -> dict[str, bytes]:
    """The points that a run has left, by path."""
    return {
        path.removeprefix("dir/"): node.content.read()
        for path, _, node in recording.last.walk("dir")
        if isinstance(node, File) and path.endswith(".json") and (f"{POINTS}/" in path or f"{FORKS}/" in path)
    }


def _conflict(bench: Bench, use: Functions) -> Outcome:
    """After a rewind the model has other words for what was done: nothing is done again, and it is told so."""
    recording = bench.recorded(Subject(OtherWords(use, bench.seed), name=f"{bench.exercise.slug}, other words"))
    acts = (op.detail["act"] for op in recording.ops if isinstance(op, t.Effect) and op.name != REQUEST)
    text = twice(acts)
    if not text:
        return Outcome(case="conflict", family="end", verdicts={"consistent": 1})
    shown = Shown(
        kind="duplicate-effect",
        crash_point="end",
        call="rewind(line, 4), and the model has other words for the same acts",
        expected="no act is done again, whatever its body: the ledger knows of it",
        found=text,
        why="a mail cannot be unsent, so what knows of it must not be taken back",
    )
    return Outcome(case="conflict", family="end", verdicts={"violation": 1}, finding=shown)
