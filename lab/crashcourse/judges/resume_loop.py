"""Exercise 3.2: ``resume(desk)``, a loop that goes on from every save of its own.

The submission runs in the workload and in each recovery. The model is the careful one: what a harness leaves
open, it looks up. No act is marked or recorded yet, so whatever is open may have been done.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

from crashcourse.desk import inbox_seed
from crashcourse.folders import temporary
from crashcourse.inside import Later
from crashcourse.inside_loop import RAN_AGAIN, Loop, Scene, view
from crashcourse.judging import failed, guarded, outcomes
from crashlab import Subject
from crashlab.errors import UsageError
from crashlab.lab import Lab

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from crashcourse.judging import Bench
    from crashcourse.result import Outcome
    from crashlab.report.model import Report

DAMAGE = ("truncate", "zeros", "garbage", "missing")
"""Cuts, zeros, other bytes, and a file that is gone. One that is old and sound nobody without a ledger could tell."""
NESTED = 2
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
WHY_COUNT = "a cap on turns, tokens or requests is reached too late, and in a loop of crashes never"
WHY_AGAIN = "whoever starts a finished run again wants its end, and pays for no request"


def judge(bench: Bench) -> list[Outcome]:
    """All cases of the exercise."""
    report = explored(bench, Scene(inbox_seed(bench.seed), "careful"), wanted(bench, FAULTS, KINDS))
    if isinstance(report, str):
        return failed(bench.exercise, "kill", report)
    return guarded(bench.exercise, report, outcomes_of(report, wanted(bench, FAULTS, KINDS), KINDS))


def explored(bench: Bench, scene: Scene, faults: Iterable[str], *, with_ledger: bool = True) -> Report | str:
    """The report on the submission in ``scene``, or why its run without a crash is wrong already."""
    with temporary() as folder:
        right = scene.right(Lab(Path(folder), lambda *_, **__: None))
    loop = Loop(Later(str(bench.file), "resume"), scene, right, with_ledger)
    subject = Subject(loop.work, check=loop.check, view=view, name=bench.exercise.slug)
    budget = dataclasses.replace(bench.budget, nested=min(NESTED, bench.budget.nested))
    try:
        return bench.explore(subject, ",".join(faults), budget=budget)
    except UsageError as error:
        return str(error)


def outcomes_of(report: Report, faults: Mapping[str, str], kinds: Mapping[str, str]) -> Iterator[Outcome]:
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
            outcome = dataclasses.replace(outcome, verdicts=verdicts, message=about_damage[0].detail)  # noqa: PLW2901 - the same, held up
        yield _explained(outcome)


def wanted(bench: Bench, faults: Mapping[str, str], kinds: Mapping[str, str]) -> dict[str, str]:
    """Of the faults those that the wanted cases need. A case of a kind that is asked for alone needs what shows it."""
    needed = {fault for case in set(kinds.values()) if bench.wants(case) for fault in SHOWN_BY.get(case, ("kill",))}
    return {fault: case for fault, case in faults.items() if bench.wants(case) or fault in needed}


def _explained(outcome: Outcome) -> Outcome:
    """What the lab cannot know: why it matters."""
    finding = outcome.finding
    if finding is None:
        return outcome
    if finding.kind == RAN_AGAIN:
        finding = dataclasses.replace(finding, kind="ran-again", contract="", why=WHY_AGAIN, advice="")
    elif outcome.case == "count":
        finding = dataclasses.replace(finding, why=WHY_COUNT, advice="")
    return dataclasses.replace(outcome, finding=finding)
