"""Every scenario of the casebook both ways: the naive form is flagged by its kind, the correct form is clean."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from crashlab import Budget, Report, explore
from tests.casebook.table import SCENARIOS
from tests.crashlab.here import needs_strace

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from tests.casebook.scenario import AnySubject, Scenario

BRIEF = Budget(real_kills=1, subset=2, sample=0, violations=2, nested=4, anew=1)


WRITES_FROM_C = ("a damaged cache database",)
"""Scenarios whose writes only strace sees."""


def each(names: Iterable[str]) -> list[Any]:
    """The names as arguments of a test; what this machine lacks is said where one is skipped."""
    return [pytest.param(name, marks=[needs_strace] * (name in WRITES_FROM_C)) for name in names]


def once() -> list[str]:
    """The scenarios, but only the first of those that share a correct form and what it must stand."""
    names: list[str] = []
    for name, told in SCENARIOS.items():
        if not any(told.is_mended_as(SCENARIOS[other]) for other in names):
            names.append(name)
    return names


def tried(subject: AnySubject, scenario: Scenario, out: Path) -> Report:
    """The check of one form of a scenario."""
    return explore(subject, faults=scenario.faults, policy=scenario.policy or None, budget=BRIEF, out=out)


@pytest.mark.parametrize("name", each(SCENARIOS))
def test_the_naive_form_is_flagged(name: str, tmp_path: Path) -> None:
    """A violation of exactly the stated kinds, and nothing left unmeasured."""
    report = tried(SCENARIOS[name].naive, SCENARIOS[name], tmp_path)
    assert report.verdict == "violation", str(report)
    assert {finding.kind for finding in report.findings} == SCENARIOS[name].kinds, str(report)
    assert not report.unmeasured, str(report)


@pytest.mark.parametrize("name", each(once()))
def test_the_correct_form_is_clean(name: str, tmp_path: Path) -> None:
    """No violation under the same faults, which really struck, and every control of the lab in order."""
    report = tried(SCENARIOS[name].correct, SCENARIOS[name], tmp_path)
    assert report.verdict == "consistent", str(report)
    assert all(control.passed for control in report.controls)
    assert all(count.judged > 1 for count in report.faults), str(report)


def test_swapped_forms_are_noticed(tmp_path: Path) -> None:
    """Sabotage: a lab that flags what is right, and lets pass what is wrong, fails both tests."""
    told = SCENARIOS["a call left open"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(SCENARIOS, "a call left open", replace(told, naive=told.correct, correct=told.naive))
        with pytest.raises(AssertionError):
            test_the_naive_form_is_flagged("a call left open", tmp_path)
        with pytest.raises(AssertionError):
            test_the_correct_form_is_clean("a call left open", tmp_path)
