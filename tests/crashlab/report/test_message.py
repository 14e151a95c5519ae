"""A report as the message of an error."""

from __future__ import annotations

import dataclasses

from crashlab.report.message import message
from crashlab.report.model import Acceptance, UnmeasuredReason
from tests.crashlab.report.samples import VIOLATION


def test_the_gravest_of_each_fault_is_told_in_full() -> None:
    """The others are one line each; the first line says it all, however long it is."""
    first = dataclasses.replace(VIOLATION.findings[0], summary="x" * 300)
    same_fault = dataclasses.replace(
        first, id="kill@99", kind="stuck", summary="another one", why="a reason of its own"
    )
    other_fault = dataclasses.replace(same_fault, id="power@99", fault="power", kind="torn", why="the power went")
    report = dataclasses.replace(VIOLATION, findings=(first, same_fault, other_fault), notes=("a remark",))
    text = message(report)
    lines = text.splitlines()
    assert lines[0] == f"VIOLATION {first.kind}: {'x' * 300} [{first.id}]"
    assert "and also   stuck: another one [kill@99]" in text
    assert "a reason of its own" not in text
    assert "VIOLATION torn: another one [power@99]" in lines
    assert "the power went" in text
    assert "note       a remark" in text
    assert lines[-1].endswith(report.run)


def test_what_is_accepted_or_not_judged_is_told_too() -> None:
    """A reader must not take the findings for all there is."""
    finding = VIOLATION.findings[0]
    accepted = (Acceptance(finding=dataclasses.replace(finding, id="kill@1"), reason="for now"),)
    reasons = (UnmeasuredReason(code="bound", detail="half of them were tried."),)
    text = message(dataclasses.replace(VIOLATION, accepted=accepted, unmeasured=reasons))
    assert "[kill@1]: for now" in text
    assert "unmeasured bound. half of them were tried." in text


def test_many_findings_are_counted() -> None:
    """A long list says nothing; their number does."""
    finding = VIOLATION.findings[0]
    many = tuple(dataclasses.replace(finding, id=f"kill@{number}") for number in range(20))
    text = message(dataclasses.replace(VIOLATION, findings=many))
    assert "… 13 more findings" in text


def test_hostile_words_stay_on_their_line() -> None:
    """A summary comes from the program under test."""
    finding = dataclasses.replace(VIOLATION.findings[0], summary="a\x1b[31m\nFAILED all")
    first = message(dataclasses.replace(VIOLATION, findings=(finding,))).splitlines()[0]
    assert "\x1b" not in first
    assert first.endswith(f"[{finding.id}]")
