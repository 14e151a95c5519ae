"""Every planted fault that a kill shows is found by its kind; every correct twin stays clean."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from crashlab import explore
from tests.quality import planted

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("fault", planted.FOUND)
def test_planted_fault_is_found(fault: str, tmp_path: Path) -> None:
    """A store, log or program with one fault is a violation of the stated kind."""
    subject, kinds = planted.FOUND[fault]
    report = explore(subject, faults="kill", out=tmp_path)
    assert report.verdict == "violation", str(report)
    assert kinds <= {finding.kind for finding in report.findings}, str(report)


@pytest.mark.parametrize("name", planted.CLEAN)
def test_correct_twin_is_clean(name: str, tmp_path: Path) -> None:
    """A correct one passes every state, with every control of the lab in order."""
    report = explore(planted.CLEAN[name], faults="kill", out=tmp_path)
    assert report.verdict == "consistent", str(report)
    assert all(control.passed for control in report.controls)
    assert report.faults[0].judged == report.faults[0].distinct == report.faults[0].consistent > 1
