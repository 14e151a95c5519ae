"""The kit's own proof: starters fail for their stated reason, solutions get 100, wrong ones lose their case.

A planted mistake is judged on the case that it must lose and on one that it must not, else it might be lost to
anything. All cases of all mistakes are judged by the full profile.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from crashcourse import catalog
from crashcourse.judging import QUICK
from crashcourse.marking import mark

if TYPE_CHECKING:
    from pathlib import Path

    from crashcourse.catalog import Exercise
    from crashcourse.result import Result

EVERY = catalog.exercises()
DEAR_MISTAKES = {
    ("audit", "clean_point"),
    ("audit", "wrong_kind"),
    ("wire-it-all", "no_lease"),
    ("rewind-and-fork", "shared_head"),
    ("effects-ledger", "error_after_success"),
}
"""Mistakes that take ten seconds each; of the same exercises three and more others are in the quick profile."""
MISTAKES = [
    pytest.param(exercise, name, marks=[pytest.mark.full] * ((exercise.slug, name) in DEAR_MISTAKES))
    for exercise in EVERY
    for name in exercise.wrong
]
PRIVATE_SEED = 20_261
ENOUGH = replace(QUICK, lost=1)
"""The first violation loses a case; a judge goes on to tell of more."""
DEAR = frozenset({"unbreakable-save", "resume-loop", "effects-ledger", "rewind-and-fork", "audit", "wire-it-all"})
"""Exercises whose solution takes ten seconds and more under one seed."""


def named(value: object) -> str | None:
    """How a parameter is called in the name of a test."""
    return value.slug if isinstance(value, catalog.Exercise) else None


def lost(result: Result) -> str:
    """What did not pass, whole: pytest cuts anything but a text."""
    rows = (str(row) for row in result.rows if row.verdict != "consistent")
    return "\n".join([f"{result.status}, {result.points}", *rows])


@pytest.mark.parametrize("exercise", EVERY, ids=named)
def test_the_solution_gets_all_points(exercise: Exercise, tmp_path: Path) -> None:
    """Under the public seed, and under a private one where that is not dear."""
    seed = None if exercise.slug in DEAR else PRIVATE_SEED
    result = mark(exercise, exercise.folder / "solution" / exercise.file, private_seed=seed, out=tmp_path)
    assert (result.status, result.points) == ("pass", catalog.FULL_MARKS), lost(result)


@pytest.mark.full  # up to half a minute each; the public seed of each, and both of all others, are in the quick profile
@pytest.mark.parametrize("exercise", [each for each in EVERY if each.slug in DEAR], ids=named)
def test_a_dear_solution_gets_all_points_under_a_private_seed_too(exercise: Exercise, tmp_path: Path) -> None:
    """As the others do."""
    result = mark(exercise, exercise.folder / "solution" / exercise.file, private_seed=PRIVATE_SEED, out=tmp_path)
    assert (result.status, result.points) == ("pass", catalog.FULL_MARKS), lost(result)


@pytest.mark.parametrize("exercise", EVERY, ids=named)
def test_the_starter_fails_for_its_stated_reason(exercise: Exercise, tmp_path: Path) -> None:
    """Each named case is lost to a violation: what is not begun yet is no failure of the set-up."""
    cases = frozenset(exercise.starter)
    result = mark(exercise, exercise.folder / "starter" / exercise.file, cases=cases, out=tmp_path)
    assert {row.id: row.verdict for row in result.rows} == dict.fromkeys(cases, "violation"), lost(result)


@pytest.mark.parametrize(("exercise", "mistake"), MISTAKES, ids=named)
def test_a_planted_mistake_loses_its_case(exercise: Exercise, mistake: str, tmp_path: Path) -> None:
    """Under both seeds together, and it does not get the points of that case."""
    case = exercise.wrong[mistake]
    file = exercise.folder / "wrong" / mistake / exercise.file
    result = mark(exercise, file, cases=frozenset({case}), budget=ENOUGH, out=tmp_path)
    assert (result.status, result.earned(case)) in (("fail", 0), ("incomplete", 0)), lost(result)
