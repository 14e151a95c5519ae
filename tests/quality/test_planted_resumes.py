"""The naive agents of lessons 1 to 3: each found by its kind and its family, clean once its one fault is mended."""

from __future__ import annotations

import ast
import inspect
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from crashlab import Budget, explore
from longrun.checkpoint import correct, naive_cut_stream
from longrun.inbox import SHORT_BODY_BYTES
from longrun.resume import trusting
from longrun.subjects import describe
from tests.quality.naive_agents import DAMAGED, NESTED, PLANTED, REACHES

if TYPE_CHECKING:
    from pathlib import Path

    from crashlab import Report
    from longrun.harness import Harness
    from tests.quality.naive_agents import Planted

FAST = Budget(real_kills=1, nested=6)
LATE = ("notes", "cut stream")
"""Faults whose kind is not among the first violations."""
ENOUGH = replace(FAST, lost=12)
"""The other states of a family are left out after so many violations; the one to which it is blind is swept whole."""
TWINS: dict[str, tuple[Harness, str, bool]] = {
    "correct": (correct.HARNESS, f"{NESTED},{DAMAGED}", False),
    "trusting": (trusting.HARNESS, NESTED, False),
    "correct where a stream is cut": (correct.HARNESS, "kill", True),
}


def found(report: Report, planted: Planted) -> None:
    """Assert that the report is a violation of the stated kind and nothing graver, in the stated family alone."""
    assert (report.verdict, report.findings[0].kind) == ("violation", planted.kind), str(report)
    never = ["never-recovered"] if planted.never else []
    assert [reason.code for reason in report.unmeasured] == never, str(report)
    counts = {count.fault: count.violation for count in report.faults}
    assert all((violations == 0) == (fault == planted.blind) for fault, violations in counts.items()), str(report)


def renamed(planted: Planted, directory: Path) -> str:
    """The path of a copy without name, docstring and title."""
    tree = ast.parse(inspect.getsource(planted.module))
    tree.body = tree.body[1:]  # the docstring says which fault it is
    text = ast.unparse(tree).replace(f"{planted.module.__name__.removeprefix('longrun.').replace('.', '/')}", "agent")
    assert "naive" not in text
    (directory / "plain_agent.py").write_text(text)
    return "plain_agent:subject"


@pytest.mark.parametrize("fault", PLANTED)
def test_the_fault_is_found_by_its_kind_and_family(fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of that kind and of nothing graver, for what it is; the fault to which it is blind finds nothing.

    In the same crash state a renamed copy is found just the same.
    """
    planted = PLANTED[fault]
    faults = ",".join(dict.fromkeys([*planted.faults.split(","), *filter(None, [planted.blind])]))
    budget = FAST if fault in LATE else ENOUGH
    report = explore(f"{planted.module.__name__}:subject", faults=faults, out=tmp_path, budget=budget)
    found(report, planted)
    assert REACHES.get(fault, "") in str(report.findings), str(report)
    monkeypatch.syspath_prepend(tmp_path)
    first = report.findings[0].id
    copy = explore(renamed(planted, tmp_path), faults=planted.faults, only=first, out=tmp_path / "copy", budget=FAST)
    assert (copy.verdict, copy.findings[0].kind, copy.findings[0].id) == ("violation", planted.kind, first), str(copy)


@pytest.mark.parametrize("fault", PLANTED)
def test_its_one_mend_makes_it_the_twin(fault: str) -> None:
    """It differs from its twin in the exchanged pieces, and in nothing else."""
    planted = PLANTED[fault]
    assert planted.twin != planted.module.HARNESS
    assert planted.mended() == planted.twin
    for piece in planted.pieces:
        kept = tuple(each for each in planted.pieces if each != piece)
        assert replace(planted, pieces=kept).mended() != planted.twin, f"{piece} is not exchanged"


@pytest.mark.parametrize("name", TWINS)
def test_the_twins_are_clean(name: str, tmp_path: Path) -> None:
    """Mended, each passes every state of what found it."""
    harness, faults, cut = TWINS[name]
    knobs = naive_cut_stream.CUT if cut else {}
    subject = describe(harness, name="mended", body_bytes=SHORT_BODY_BYTES, knobs=knobs)
    report = explore(subject, faults=faults, out=tmp_path, budget=FAST)
    assert report.verdict == "consistent", str(report)
    assert all(count.judged >= 10 for count in report.faults), str(report)
