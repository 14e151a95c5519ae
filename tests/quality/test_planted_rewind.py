"""The naive ways to rewind and fork: each found by its kind and its family, clean once its one fault is mended."""

from __future__ import annotations

import ast
import inspect
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from crashlab import Budget, Lab, UsageError, Violation, explore
from longrun.rewind import correct
from tests.quality.rewind_agents import DEFECTS, PLANTED

if TYPE_CHECKING:
    from pathlib import Path

    from crashlab import Report, Subject
    from tests.quality.rewind_agents import Planted

FAST = Budget(real_kills=1, nested=3)
AT_THE_END = [name for name, planted in PLANTED.items() if planted.family == "end"]
BY_KILL = [name for name, planted in PLANTED.items() if planted.family == "kill"]


def renamed(planted: Planted, directory: Path) -> str:
    """The path of a copy without name, docstring and title."""
    tree = ast.parse(inspect.getsource(planted.module))
    tree.body = tree.body[1:]  # the docstring says which fault it is
    text = ast.unparse(tree).replace(planted.module.__name__.removeprefix("longrun.").replace(".", "/"), "agent")
    assert "naive" not in text
    (directory / "plain_agent.py").write_text(text)
    return "plain_agent:subject"


def at_the_end(subject: Subject, directory: Path) -> Violation | None:
    """What the subject's own check says of a run without any crash."""
    directory.mkdir()
    lab = Lab(directory, lambda *_given, **_fields: None)
    end = subject.run(lab)
    assert subject.check is not None
    assert subject.view is not None
    with lab.checking(expected=subject.view(end)):
        try:
            subject.check(lab, end)
        except Violation as violation:
            return violation
    return None


# --- the naive modules ------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", AT_THE_END)
def test_a_run_without_a_crash_shows_it(fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the stated kind, for what it is; the lab says so before it crashes anything; so with a renamed copy."""
    planted = PLANTED[fault]
    violation = at_the_end(planted.module.subject, tmp_path / "run")
    assert violation is not None
    assert (violation.kind, planted.reaches in str(violation)) == (planted.kind, True), str(violation)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(UsageError, match=f"check failed without any crash: .*{planted.reaches}"):
        explore(renamed(planted, tmp_path), faults="kill", out=tmp_path, budget=FAST)


@pytest.mark.parametrize("fault", BY_KILL)
def test_a_kill_finds_it(fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not without a crash; then of the stated kind and of nothing graver; a renamed copy in the same state."""
    planted = PLANTED[fault]
    report = explore(f"{planted.module.__name__}:subject", faults="kill", out=tmp_path, budget=FAST)
    found(report, planted)
    monkeypatch.syspath_prepend(tmp_path)
    first = report.findings[0].id
    copy = explore(renamed(planted, tmp_path), faults="kill", only=first, out=tmp_path / "copy", budget=FAST)
    assert (copy.verdict, copy.findings[0].kind, copy.findings[0].id) == ("violation", planted.kind, first), str(copy)


def found(report: Report, planted: Planted) -> None:
    """Assert that the report is a violation of the stated kind, and nothing graver, for what it is."""
    assert (report.verdict, report.findings[0].kind) == ("violation", planted.kind), str(report)
    assert planted.reaches in str(report.findings), str(report)
    assert not report.unmeasured, str(report)


@pytest.mark.parametrize("fault", PLANTED)
def test_its_one_mend_makes_it_the_twin(fault: str) -> None:
    """It differs from its twin in the exchanged pieces, and in nothing else."""
    planted = PLANTED[fault]
    assert planted.module.WAYS != correct.WAYS
    assert planted.mended() == correct.WAYS
    for piece in planted.pieces:
        kept = tuple(each for each in planted.pieces if each != piece)
        assert replace(planted, pieces=kept).mended() != correct.WAYS, f"{piece} is not exchanged"


def test_each_defect_of_this_lesson_is_a_module_with_a_test() -> None:
    """Every row of the table is a planted module, and each is tried by the test of its family."""
    tried = {"end": AT_THE_END, "kill": BY_KILL, "race": ["shared head"]}
    for defect, name in DEFECTS.items():
        assert name in tried[PLANTED[name].family], defect
    assert {name for names in tried.values() for name in names} == set(PLANTED)
