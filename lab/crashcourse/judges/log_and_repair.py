"""Exercise 7.2: an event log that is opened, appended to, flushed, repaired, shown and branched, under every fault.

Three programs use it (:mod:`crashcourse.inside_log`): the bare log shows what is lost of a list, an agent shows what
a repair is worth, a conversation with branches shows where its head is. The form of the file is the submission's own.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from crashcourse.inside import Function, Later
from crashcourse.inside_log import Branches, Functions, Letters, Notes, Opens, batches
from crashcourse.judging import failed, guarded, merged, never_whole, outcomes
from crashlab import Log, Subject
from crashlab.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from crashcourse.judging import Bench
    from crashcourse.result import Outcome
    from crashlab.report.model import Report
    from crashlab.subject import AnySubject

NAMES = ("open_log", "append", "flush", "repair", "project", "branch")
DAMAGE = ("bit", "truncate", "zeros")
ERRORS = ("EIO", "short-write", "failed-fsync")
"""A full disk takes the first half of a write before it says so; a sync that fails has given the pages up."""
OF_NOTES = {
    "kill": "kill",
    "power": "power",
    **{f"error:{variant}": "error" for variant in ERRORS},
    **{f"damage:{kind}": "damage" for kind in DAMAGE},
}
OF_LETTERS = {"kill": "kill", "power": "power", "recovery": "nested"}
KINDS = {"invalid-transcript@kill": "pair", "invalid-transcript@power": "pair"}
NESTED, REAL_KILLS, SAMPLE = 3, 2, 4
"""Per recovery so many second crashes; and of each of the three programs so many real kills and samples."""


def judge(bench: Bench) -> list[Outcome]:
    """All cases of the exercise."""
    now = Functions(*(Function(str(bench.file), name) for name in NAMES))
    use = Functions(*(Later(str(bench.file), name) for name in NAMES))
    try:
        return merged([*_notes(bench, now), *_letters(bench, use), *_branches(bench, use)])
    except UsageError as error:
        return failed(bench.exercise, bench.exercise.cases[0].id, str(error))


def _notes(bench: Bench, use: Functions) -> Iterable[Outcome]:
    log = Log(
        Notes.append,
        Notes.load,
        open=Opens(use),
        values=tuple(batches(bench.seed)),
        name=f"{bench.exercise.slug}, a list",
    )
    return _explored(bench, log, bench.faults(OF_NOTES))


def _letters(bench: Bench, use: Functions) -> Iterable[Outcome]:
    letters = Letters(use, bench.seed)
    subject = Subject(
        letters.work,
        letters.work,
        check=letters.check,
        view=letters.view,
        name=f"{bench.exercise.slug}, an agent",
    )
    faults = bench.faults(OF_LETTERS)
    if bench.wants("pair"):
        faults = {fault: case for fault, case in OF_LETTERS.items() if fault != "recovery" or bench.wants(case)}
    return _explored(bench, subject, faults, guarded, kinds=KINDS)


def _branches(bench: Bench, use: Functions) -> Iterable[Outcome]:
    tree = Branches(use, bench.seed)
    subject = Subject(tree.run, tree.resume, check=tree.check, name=f"{bench.exercise.slug}, branches")
    return _explored(bench, subject, bench.faults({"kill": "branch"}))


def _explored(
    bench: Bench,
    subject: AnySubject,
    faults: dict[str, str],
    guard: Callable[..., list[Outcome]] = lambda _exercise, _report, found: list(found),
    **kinds: dict[str, str],
) -> list[Outcome]:
    """The outcomes of one program. Raises UsageError where it fails without any crash."""
    if not faults:
        return []
    asked = bench.budget
    budget = dataclasses.replace(
        asked,
        nested=min(NESTED, asked.nested),
        real_kills=min(REAL_KILLS, asked.real_kills),
        sample=min(SAMPLE, asked.sample),
    )
    report: Report = bench.explore(subject, ",".join(faults), budget=budget)
    if message := never_whole(report):
        raise UsageError(message)
    return guard(bench.exercise, report, outcomes(report, faults, **kinds))
