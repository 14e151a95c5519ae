"""Exercise 3.2: ``resume(desk)``, a loop that goes on from every save of its own.

The submission runs in the workload and in each recovery. The model is the careful one: what a harness leaves
open, it looks up. No act is marked or recorded yet, so whatever is open may have been done.
"""

from __future__ import annotations

import dataclasses
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crashcourse.desk import inbox_seed
from crashcourse.inside import Later
from crashcourse.inside_desk import reference
from crashcourse.inside_loop import RAN_AGAIN, Loop
from crashcourse.judging import QUICK, failed, guarded, outcomes
from crashlab import Subject
from crashlab.errors import UsageError
from crashlab.lab import Lab
from longrun.subjects import view

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from crashcourse.judging import Bench
    from crashcourse.result import Outcome
    from crashlab.report.model import Report
    from longrun.personas import Persona

DAMAGE = ("truncate", "zeros", "garbage", "missing")
"""Cuts, zeros, other bytes, and a file that is gone. One that is old and sound nobody without a ledger could tell."""
LIGHT = dataclasses.replace(QUICK, nested=2)
"""Of a recovery two crashes a moment are enough here: what a second one shows, it shows at many moments."""
FAULTS = {"kill": "kill", "recovery": "nested", **{f"damage:{kind}": "damage" for kind in DAMAGE}}
KINDS = {
    "duplicate-effect@kill": "once",
    "duplicate-effect@recovery": "once",
    "missing-effect@kill": "once",
    "missing-effect@recovery": "once",
    "needless-unknown": "once",
    "invalid-transcript": "pair",
    "guard-bypassed": "count",
    RAN_AGAIN: "again",
}
SHOWN_BY = {"pair": ("kill", "recovery")}
"""Per case of a kind the faults by which it is shown, where they are others than a kill."""
_WHY = {
    "count": "a cap on turns, tokens or requests is reached too late, and in a loop of crashes never",
    "again": "whoever starts a finished run again wants its end, and pays for no request",
}


def judge(bench: Bench) -> list[Outcome]:
    """All cases of the exercise."""
    return judged(bench, FAULTS, KINDS, persona="careful")


def judged(
    bench: Bench, faults: Mapping[str, str], kinds: Mapping[str, str], *, persona: Persona, with_ledger: bool = True
) -> list[Outcome]:
    """The cases of a loop that is workload and recovery in one."""
    seed = inbox_seed(bench.seed)
    loop = loop_of(Later(str(bench.file), "resume"), seed, persona, with_ledger=with_ledger)
    subject = Subject(loop.work, check=loop.check, view=view, name=bench.exercise.slug)
    wanted = _wanted(bench, faults, kinds)
    budget = LIGHT if bench.budget == QUICK else bench.budget
    try:
        report = bench.explore(subject, ",".join(wanted), budget=budget)
    except UsageError as error:
        return failed(bench.exercise, bench.exercise.cases[0].id, str(error))
    return guarded(bench.exercise, report, map(_explained, _outcomes(report, wanted, kinds)))


def _outcomes(report: Report, faults: Mapping[str, str], kinds: Mapping[str, str]) -> Iterator[Outcome]:
    """The outcomes, each held up only by reasons that concern it.

    Who goes on with a run that is over has recovered before, and loses the case of that alone. Where the files without
    damage are not recovered rightly, nothing is known of damage; what is wrong about them another case has found.
    """
    rest, about_damage = [], []
    for reason in report.unmeasured:
        if reason.code == "never-recovered" and report.findings and reason.detail.startswith("damage:"):
            about_damage.append(reason)
        elif reason.code != "never-recovered" or any(finding.kind != RAN_AGAIN for finding in report.findings):
            rest.append(reason)
    for outcome in outcomes(dataclasses.replace(report, unmeasured=tuple(rest)), faults, kinds=kinds):
        if outcome.case == "damage" and about_damage and not outcome.verdicts.get("violation"):
            verdicts = {**outcome.verdicts, "unmeasured": 1 + outcome.verdicts.get("unmeasured", 0)}
            yield dataclasses.replace(outcome, verdicts=verdicts, message=about_damage[0].detail)
        else:
            yield outcome


def _wanted(bench: Bench, faults: Mapping[str, str], kinds: Mapping[str, str]) -> dict[str, str]:
    """Of the faults those that the wanted cases need. A case of a kind that is asked for alone needs what shows it."""
    needed = {fault for case in set(kinds.values()) if bench.wants(case) for fault in SHOWN_BY.get(case, ("kill",))}
    return {fault: case for fault, case in faults.items() if bench.wants(case) or fault in needed}


def loop_of(function: Later, seed: int, persona: Persona, *, with_ledger: bool) -> Loop:
    """The submission, and beside it where the agent of the course comes to on the same inbox."""
    with tempfile.TemporaryDirectory(prefix="crashcourse-") as folder:
        end: dict[str, Any] = reference(seed).run(Lab(Path(folder), lambda *_, **__: None))
    return Loop(function, seed, persona, end["world"], end["transcript"], with_ledger)


def _explained(outcome: Outcome) -> Outcome:
    """What the lab cannot know: why it matters."""
    if outcome.case not in _WHY or outcome.finding is None:
        return outcome
    kind = "ran-again" if outcome.finding.kind == RAN_AGAIN else outcome.finding.kind
    return dataclasses.replace(
        outcome, finding=dataclasses.replace(outcome.finding, kind=kind, contract="", why=_WHY[outcome.case], advice="")
    )
