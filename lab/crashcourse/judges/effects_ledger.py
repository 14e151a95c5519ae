"""Exercise 4.2: ``resume(desk)`` with a ledger, judged with the hasty model.

What its ledger says is the submission's own business: only that it grows line by line, that no line which a save has
counted is lost or believed after damage, and what comes of it in the world is judged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from crashcourse.desk import inbox_seed
from crashcourse.inside_loop import Scene
from crashcourse.judges.resume_loop import explored, outcomes_of, wanted
from crashcourse.judging import failed, guarded, merged

if TYPE_CHECKING:
    from crashcourse.judging import Bench
    from crashcourse.result import Outcome

DAMAGE = ("truncate", "zeros", "garbage", "missing")
FAULTS = {
    "kill": "kill",
    "power": "power",
    "error:EIO": "error",
    "error:ENOSPC": "error",
    "recovery": "nested",
    **{f"damage:{kind}": "damage" for kind in DAMAGE},
}
WHOLE = ("kill", "recovery")
"""What is tried on all of the work; all else on its middle, where the acts are that no key protects."""
KINDS = {
    "duplicate-effect@kill": "once",
    "duplicate-effect@recovery": "once",
    "needless-unknown@kill": "unknown",
    "needless-unknown@power": "unknown",
    "needless-unknown@recovery": "unknown",
}
"""An act done twice after a kill is that of an act's name or of the gate; after another fault it is that fault's."""


def judge(bench: Bench) -> list[Outcome]:
    """All cases of the exercise: a kill in the whole scene, all else in the brief one."""
    seed, faults = inbox_seed(bench.seed), wanted(bench, FAULTS, KINDS)
    found: list[Outcome] = []
    for brief in (False, True):
        chosen = {fault: case for fault, case in faults.items() if brief is (fault not in WHOLE)}
        if not chosen:
            continue
        report = explored(bench, Scene(seed, "hasty", brief), chosen, with_ledger=False)
        if isinstance(report, str):
            return failed(bench.exercise, bench.exercise.cases[0].id, report)
        judged = outcomes_of(report, chosen, KINDS)
        found += judged if brief else guarded(bench.exercise, report, judged)
    return merged(found)
