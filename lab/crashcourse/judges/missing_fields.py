"""Exercise 2.1: what each field of a checkpoint is for, shown by a crash after which a resume without it goes wrong.

The lab strips the field, lets the agent of lesson 3 resume at the point that the learner names, and compares what
goes wrong. The mended twin is the same resume with all fields there: it must be clean at the same point.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from crashcourse.desk import inbox_seed
from crashcourse.explain import Table, answers, judged, stage
from crashcourse.inside_fields import CAPS, FIELDS, SYMPTOMS, SixFields, Variant
from crashcourse.judging import failed
from crashcourse.result import Shown
from crashlab import Subject
from crashlab.errors import LabError, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from crashcourse.explain import Stage
    from crashcourse.judging import Bench
    from crashcourse.result import Outcome

LARGEST_CAP = 14
"""One answer less than the run has: a cap that is never reached shows nothing."""
NONE = SYMPTOMS[0]


def judge(bench: Bench) -> list[Outcome]:
    """All cases of the exercise."""
    try:
        form = answers(bench.file, FIELDS)
    except UsageError as error:
        return failed(bench.exercise, bench.exercise.cases[0].id, str(error))
    pairs = {name: variants(form, name) for name in FIELDS}
    every = tuple(dict.fromkeys(each for pair in pairs.values() for each in pair))
    run = SixFields(inbox_seed(bench.seed, same=True), every)
    with stage(Subject(run.run, run.resume, name="six fields")) as scene:
        parts = {f"field.{name}": partial(_field, form, name, pairs[name], scene) for name in FIELDS}
        return [judged(case, {case: work}) for case, work in parts.items() if bench.wants(case)]


def variants(form: Mapping[str, Any], name: str) -> tuple[Variant, Variant]:
    """The resume without the field ``name``, and its mended twin; with the cap that was answered, if it is one."""
    table = form.get(name)
    cap = table.get("cap") if isinstance(table, dict) else None
    if name not in CAPS or type(cap) is not int or not 1 <= cap <= LARGEST_CAP:
        return Variant(missing=name), Variant()
    return Variant(missing=name, capped=name, cap=cap), Variant(capped=name, cap=cap)


def _field(form: Mapping[str, Any], name: str, pair: tuple[Variant, Variant], scene: Stage) -> Shown | str | None:
    table = Table.of(form, name, ("symptom", "point", *(["cap"] if name in CAPS else [])))
    said, state = table.text("symptom", SYMPTOMS), scene.at(table)
    if name in CAPS:
        table.number("cap", 1, LARGEST_CAP)
    step = scene.recovered(state)
    if step.how != "returned" or step.value is None:
        text = f"{state.id}: the variants of the resume did not come to their end: {step.how} {step.error}"
        raise LabError(text)
    missing, mended = (step.value["end"][variant.name] for variant in pair)
    if said == NONE:
        return f"{name}.symptom is {NONE!r}; find a point where something goes wrong without the field"
    if missing == said and mended == NONE:
        return None
    found = f"without {name}: {missing}; with all fields: {mended}"
    expected = f"without {name}: {said}; with all fields: {NONE}"
    return Shown(kind="wrong-answer", state=state.id, crash_point=table.text("point"), expected=expected, found=found)
