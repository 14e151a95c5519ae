"""The result: points only for what holds under every seed, and nothing of the private twin in the public report."""

from __future__ import annotations

import json
from typing import Any

import pytest

from crashcourse.catalog import find
from crashcourse.result import Outcome, Result, Row, Shown, rows_of

TWIN_TEXT = "only the private twin knows this"


def row(case: str = "kill", visibility: str = "public", *, states_min: int = 1, **verdicts: int) -> Row:
    return Row(
        id=case,
        visibility=visibility,
        invariant="old or new",
        family=case,
        points_max=20,
        states_min=states_min,
        verdicts=verdicts,
        finding=Shown(kind="lost", found=TWIN_TEXT) if visibility == "private" else None,
        message=TWIN_TEXT if visibility == "private" else "",
    )


def result(*rows: Row, **more: Any) -> Result:
    seeds = {"public": 1, "private_sha256": "5ec2e7"}
    fixed = {"exercise": "e", "submission_sha256": "0" * 64, "isolation": "same-user", "recorder": "python"}
    return Result(**{**fixed, "seeds": seeds, "rows": rows, "kit_version": "0", **more})


@pytest.mark.parametrize(
    ("verdicts", "least", "verdict"),
    [
        ({"consistent": 3}, 1, "consistent"),
        ({"consistent": 3, "refused": 2}, 1, "consistent"),
        ({"consistent": 3, "violation": 1}, 1, "violation"),
        ({"consistent": 3, "unmeasured": 1}, 1, "unmeasured"),
        ({"violation": 1, "unmeasured": 1}, 1, "violation"),
        ({"consistent": 3}, 4, "unmeasured"),
        ({}, 0, "consistent"),
        ({}, 1, "unmeasured"),
    ],
)
def test_the_gravest_state_is_the_verdict(verdicts: dict[str, int], least: int, verdict: str) -> None:
    """Being right in all states but one is being wrong; too few states are no pass."""
    assert row(states_min=least, **verdicts).verdict == verdict


def test_points_need_the_public_run_and_the_private_twin() -> None:
    """Either alone is worth nothing."""
    good, bad = row(consistent=3), row(visibility="private", violation=1)
    assert (result(good).points, result(good, bad).points) == (20, 0)
    assert result(good, row(visibility="private", consistent=3)).points == 20
    assert (result(good, bad).status, result(good).status) == ("fail", "pass")


def test_what_could_not_be_judged_is_covered_by_no_points() -> None:
    """An unmeasured case is no failure and no pass."""
    found = result(row(consistent=3), row("power"))
    assert (found.status, found.points, found.points_covered, found.points_max) == ("incomplete", 20, 20, 40)


def test_no_rows_are_the_judges_error() -> None:
    """An empty result is never a pass."""
    assert result().status == "judge-error"
    assert result(row(consistent=1), error="it broke").status == "judge-error"


def test_the_public_report_holds_nothing_of_the_private_twin() -> None:
    """Neither rows nor seeds nor texts; its points are those of the public rows."""
    found = result(row(consistent=3), row(visibility="private", violation=1))
    public = json.dumps(found.public().to_json())
    assert TWIN_TEXT in json.dumps(found.to_json())
    assert TWIN_TEXT not in public
    assert "private" not in public
    assert found.public().points == 20


def test_a_case_that_is_missing_or_surplus_is_the_judges_mistake() -> None:
    """It is never counted as anything."""
    exercise = find("2.2")
    all_of_them = [Outcome(case=case.id, verdicts={"consistent": 1}) for case in exercise.cases]
    assert [row.id for row in rows_of(exercise, all_of_them, "public")] == [case.id for case in exercise.cases]
    for outcomes in (
        all_of_them[1:],
        [*all_of_them, all_of_them[0]],
        [*all_of_them, Outcome(case="more", verdicts={})],
    ):
        with pytest.raises(ValueError, match="the judge told of"):
            rows_of(exercise, outcomes, "public")
    only = frozenset({"kill"})
    assert [row.id for row in rows_of(exercise, all_of_them, "public", cases=only)] == ["kill"]
    with pytest.raises(ValueError, match="the judge told of"):
        rows_of(exercise, [], "public", cases=only)
