"""Exercise 6.2: ``start(desk)`` and ``resume(desk)``, a whole harness under all families and in four further scenes.

Everything happens in the brief scene of lesson 4, with the hasty model. The scenes that no plain run shows
each have one case: a plain start over a run, a question, a poisonous call; a cap is judged with what crashes twice.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

from crashcourse.desk import inbox_seed
from crashcourse.folders import temporary
from crashcourse.inside import Later
from crashcourse.inside_loop import RAN_AGAIN, Scene
from crashcourse.inside_whole import CAPPED, FRESH, PLAIN, POISONED, WAITING, Whole, view
from crashcourse.judging import failed, guarded, merged, outcomes
from crashcourse.result import Outcome
from crashlab import Subject
from crashlab.errors import UsageError
from crashlab.lab import Lab

if TYPE_CHECKING:
    from collections.abc import Iterator

    from crashcourse.judging import Bench

FAULTS = {
    "kill": "kill",
    "power": "power",
    "error:EIO": "error",
    "error:ENOSPC": "error",
    **{f"damage:{kind}": "damage" for kind in ("truncate", "zeros", "garbage", "missing")},
    "recovery": "nested",
    "race": "race",
}
KINDS = {
    "duplicate-effect@kill": "once",
    "duplicate-effect@recovery": "once",
    "missing-effect@kill": "once",
    "missing-effect@recovery": "once",
    "needless-unknown@kill": "once",
    "needless-unknown@recovery": "once",
    "invalid-transcript": "pair",
    "guard-bypassed@kill": "count",
    "guard-bypassed@recovery": "count",
    RAN_AGAIN: "again",
}
SCENES = {FRESH: "fresh", WAITING: "waiting", CAPPED: "nested", POISONED: "poison"}
NESTED, RACES = 2, 2


def judge(bench: Bench) -> list[Outcome]:
    """All cases of the exercise."""
    start, go_on = (Later(str(bench.file), name) for name in ("start", "resume"))
    scene = Scene(inbox_seed(bench.seed), "hasty", brief=True)
    with temporary() as folder:
        right = scene.right(Lab(Path(folder), lambda *_, **__: None))
    plain = Whole(start, go_on, scene, right)
    try:
        families = _families(bench, plain)
    except UsageError as error:
        return failed(bench.exercise, bench.exercise.cases[0].id, str(error))
    return merged([*families, *_scenes(bench, plain)])


def _families(bench: Bench, plain: Whole) -> list[Outcome]:
    """The cases of the plain scene, under all faults."""
    faults = {fault: case for fault, case in FAULTS.items() if bench.wants(case)}
    if any(map(bench.wants, KINDS.values())):
        faults = {"kill": "kill", **faults}
    if not faults:
        return []
    budget = dataclasses.replace(
        bench.budget, nested=min(NESTED, bench.budget.nested), sample=min(RACES, bench.budget.sample)
    )
    report = bench.explore(_subject(bench, plain), ",".join(faults), budget=budget)
    return guarded(bench.exercise, report, outcomes(report, faults, kinds=KINDS))


def _scenes(bench: Bench, plain: Whole) -> Iterator[Outcome]:
    """The cases of the other scenes."""
    for kind, case in SCENES.items():
        if bench.wants(case):
            scene = dataclasses.replace(plain, kind=kind)
            only = "kill@0" if kind == POISONED else None
            try:
                report = bench.explore(_subject(bench, scene), "kill", only=only)
            except UsageError as error:
                yield Outcome(case=case, family="end", verdicts={"violation": 1}, message=str(error))
            else:
                yield from outcomes(report, {"kill": case})


def _subject(bench: Bench, whole: Whole) -> Subject:
    name = bench.exercise.slug if whole.kind == PLAIN else f"{bench.exercise.slug}, {whole.kind}"
    return Subject(whole.run, whole.resume, check=whole.check, view=view, name=name)
