"""How every use case here is tried: as its user would, with ``check``, kept short."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from crashlab import Unmeasured, Violation, check

if TYPE_CHECKING:
    from pathlib import Path

    from crashlab.report.model import Report
    from crashlab.subject import AnySubject

DEFAULTS: dict[str, Any] = {"budget": "brief", "jobs": 1}


def passes(subject: AnySubject, out: Path, **options: Any) -> Report:
    """The report of a check that passes; ``check`` raises where it does not."""
    report = check(subject, **{**DEFAULTS, "out": out, **options})
    assert report.verdict == "consistent"
    assert sum(each.judged for each in report.faults) > 0
    return report


def kinds(subject: AnySubject, out: Path, **options: Any) -> set[str]:
    """The kinds of violation that a check fails with, each with the fault: ``{"power lost"}``."""
    with pytest.raises(Violation) as caught:
        check(subject, **{**DEFAULTS, "out": out, **options})
    report = caught.value.report
    assert report is not None
    assert caught.value.kind == report.findings[0].kind
    assert str(caught.value).startswith(f"VIOLATION {caught.value.kind}: ")
    return {f"{finding.fault} {finding.kind}" for finding in report.findings}


def no_verdict(subject: AnySubject, out: Path, **options: Any) -> tuple[set[str], str]:
    """The codes for which a check cannot judge, and its message."""
    with pytest.raises(Unmeasured) as caught:
        check(subject, **{**DEFAULTS, "out": out, **options})
    report = caught.value.report
    assert report is not None
    return {each.code for each in report.unmeasured}, str(caught.value)
