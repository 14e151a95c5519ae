"""Accepted findings in every view: each says that the pass is none without them."""

from __future__ import annotations

import dataclasses
from xml.etree import ElementTree as ET

import pytest

from crashlab.report.accepted import accepted_lines, with_accepted
from crashlab.report.model import Acceptance
from crashlab.report.sentences import verdict_sentence
from crashlab.report.views import draw
from tests.crashlab.report.samples import PASS, VIOLATION

FINDING = VIOLATION.findings[0]
ACCEPTED = dataclasses.replace(
    VIOLATION,
    verdict="consistent",
    findings=(),
    unmeasured=(),
    accepted=tuple(Acceptance(finding=each, reason="for now & ever") for each in VIOLATION.findings),
)


def test_lines_say_what_and_why() -> None:
    """And a report without any has none."""
    assert accepted_lines(ACCEPTED)[0].endswith(f"[{FINDING.id}]: for now & ever")
    assert accepted_lines(ACCEPTED)[0].startswith(FINDING.kind)
    assert (accepted_lines(PASS), with_accepted(PASS)) == ([], "")


def test_the_sentence_does_not_claim_all_states() -> None:
    """Some of them did break a promise."""
    assert not verdict_sentence(ACCEPTED).startswith("All ")
    assert "that the project has accepted" in verdict_sentence(ACCEPTED)
    assert verdict_sentence(PASS).startswith("All ")


@pytest.mark.parametrize("format_name", ["text", "html", "github"])
def test_each_view_tells_them_beside_its_verdict(format_name: str) -> None:
    """With the reason of each."""
    drawn = draw([ACCEPTED], format_name, **({"color": False} if format_name == "text" else {}))
    assert with_accepted(ACCEPTED) in drawn
    assert drawn.count("for now") == len(ACCEPTED.accepted)
    assert "accepted finding" not in draw([PASS], format_name, **({"color": False} if format_name == "text" else {}))


def test_junit_has_neither_failure_nor_error() -> None:
    """An accepted finding is a property of its case; an unaccepted twin is a failure."""
    suite = ET.fromstring(draw([ACCEPTED], "junit").encode())  # noqa: S314 - made here
    assert (list(suite.iter("failure")), list(suite.iter("error"))) == ([], [])
    names = {each.get("name") for each in suite.iter("property")}
    assert "crashlab.accepted" in names
    assert list(ET.fromstring(draw([VIOLATION], "junit").encode()).iter("failure"))  # noqa: S314 - made here
