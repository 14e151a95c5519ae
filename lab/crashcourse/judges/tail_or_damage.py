"""Exercise 7.1: torn tail or damage, of eight logs; and a power loss of which two readers make two things.

What is true of the logs is what the reader of lesson 7 makes of them. The power loss is replayed by the lab under
both readers: the one that goes by the last line must go wrong there, and its mended twin, which asks what was promised,
must be clean.
"""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crashcourse.explain import Table, answers, judged
from crashcourse.judging import failed
from crashcourse.result import Shown
from crashcourse.two_readers import DAMAGE, TAIL, WHOLE, logs, readers, verdict_of
from crashlab.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from crashcourse.judging import Bench
    from crashcourse.result import Outcome
    from crashlab import Log

VERDICTS = (WHOLE, TAIL, DAMAGE)
FAULT = "power"
NO_FAULT = "clean"
UNMEASURED = "unmeasured"


def judge(bench: Bench) -> list[Outcome]:
    """All cases of the exercise."""
    try:
        form = answers(bench.file, ("logs", "ninth"))
    except UsageError as error:
        return failed(bench.exercise, bench.exercise.cases[0].id, str(error))
    found = []
    if bench.wants("logs"):
        found.append(judged("logs", {name: partial(_log, form, bench.seed, name) for name in logs(bench.seed)}))
    if bench.wants("ninth"):
        found.append(judged("ninth", {"ninth": partial(_ninth, form, bench)}))
    return found


def _log(form: Mapping[str, Any], seed: int, name: str) -> Shown | None:
    every = logs(seed)
    said = Table.of(form, "logs", tuple(every)).text(name, VERDICTS)
    with tempfile.TemporaryDirectory(prefix="crashcourse-") as folder:
        truth = verdict_of(*every[name], Path(folder))
    if said == truth:
        return None
    return Shown(
        kind="wrong-answer",
        crash_point=name,
        expected="what a reader makes of it that asks which records were promised",
        found=f"{name} = {said}",
    )


def _ninth(form: Mapping[str, Any], bench: Bench) -> Shown | str | None:
    table = Table.of(form, "ninth", ("state",))
    state = table.text("state")
    if not state.startswith(f"{FAULT}@"):
        return f"ninth.state is {state!r}; a power loss is named as in power@12-3"
    mended, naive = (_made_of(bench, log, state) for log in readers(bench.seed))
    if mended == NO_FAULT and naive not in (NO_FAULT, UNMEASURED):
        return None
    return Shown(
        kind="wrong-answer",
        state=state,
        crash_point="ninth",
        expected=f"a power loss at which last_line_only goes wrong, and correct is {NO_FAULT}",
        found=f"last_line_only: {naive}; correct: {mended}",
    )


def _made_of(bench: Bench, log: Log, state: str) -> str:
    """The kind of what a reader does wrong at that state. Raises UsageError where there is no such state."""
    report = bench.explore(log, FAULT, only=state)
    if report.verdict == UNMEASURED:
        return UNMEASURED
    return report.findings[0].kind if report.findings else NO_FAULT
