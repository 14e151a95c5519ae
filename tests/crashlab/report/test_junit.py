"""The JUnit view: XML that any reader takes, and in which no failed check looks like a passed one."""

from __future__ import annotations

import dataclasses
from xml.etree import ElementTree

import pytest

from crashlab.report import junit
from crashlab.report.junit import render_junit
from crashlab.report.model import Control, Report
from tests.crashlab.report.hostile import TEXTS, full_report, poisoned
from tests.crashlab.report.samples import ALL, CUT, DUPLICATE, PASS, REASON, UNMEASURED, VIOLATION, count, report


def parsed(*reports: Report) -> ElementTree.Element:
    """The document as a reader gets it."""
    return ElementTree.fromstring(render_junit(reports).encode())  # noqa: S314 - made here, a moment ago


def outcome(case: ElementTree.Element) -> str:
    """What a reader shows for one test case."""
    return next((each.tag for each in case if each.tag in ("failure", "error", "skipped")), "passed")


def outcomes(*reports: Report) -> dict[str, str]:
    """The name of each test case, and what a reader shows for it."""
    return {case.get("name", ""): outcome(case) for case in parsed(*reports).iter("testcase")}


def test_each_fault_of_each_subject_is_a_case() -> None:
    """With the counts that a reader adds up."""
    root = parsed(PASS, VIOLATION)
    assert [suite.get("name") for suite in root] == ["crashlab agent", "crashlab agent"]
    assert {name: root.get(name) for name in ("tests", "failures", "errors", "skipped")} == {
        "tests": "2",
        "failures": "1",
        "errors": "0",
        "skipped": "0",
    }
    case = root[1].find("testcase")
    assert case is not None
    assert (case.get("classname"), case.get("name")) == ("crashlab.agent", "kill")


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, "passed"),
        ({"consistent": 30, "refused": 1}, "passed"),
        ({"violation": 1}, "failure"),
        ({"violation": 1, "unmeasured": 1}, "failure"),
        ({"unmeasured": 1}, "error"),
        ({"states": 0, "distinct": 0, "judged": 0, "consistent": 0}, "skipped"),
    ],
    ids=["consistent", "refused", "violation", "both", "unmeasured", "nothing"],
)
def test_what_a_fault_comes_to(fields: dict[str, int], expected: str) -> None:
    """A refusal that is allowed passes; a violation outweighs what could not be judged; nothing judged is no pass."""
    verdict = "violation" if "violation" in fields else "unmeasured" if "unmeasured" in fields else "consistent"
    each = report(verdict=verdict, faults=(count(**fields), count(fault="power")))
    assert outcomes(each)["kill"] == expected


@pytest.mark.parametrize("verdict", ["violation", "unmeasured"])
@pytest.mark.parametrize("faults", [(), (count(),), (count(judged=0, consistent=0, distinct=0, states=0),)])
@pytest.mark.parametrize("findings", [(), (DUPLICATE,), (dataclasses.replace(CUT, fault="power"),)])
def test_no_report_that_is_no_pass_looks_like_one(verdict: str, faults: object, findings: object) -> None:
    """Whatever its parts say: a reader that only counts failures and errors sees it."""
    each = report(verdict=verdict, faults=faults, findings=findings)
    root = parsed(each)
    assert int(root.get("failures", 0)) + int(root.get("errors", 0)) > 0


def test_a_check_that_judged_nothing_is_an_error() -> None:
    """A file without a failed case must mean that something was tried."""
    assert outcomes(report(faults=())) == {"judged": "error"}


def test_a_failure_names_its_findings() -> None:
    """The message is complete by itself, the text is that of the terminal, the ids are a property."""
    failure = parsed(VIOLATION).find(".//failure")
    assert failure is not None
    assert failure.get("message", "").startswith("lost: 1 acked event unreadable; load() raised")
    assert failure.get("type") == "lost"
    assert "VIOLATION duplicate-effect" in (failure.text or "")
    properties = {each.get("name"): each.get("value") for each in parsed(VIOLATION).iter("property")}
    assert properties["crashlab.ids"] == "kill@6+4085 kill@7"
    assert properties["crashlab.verdict"] == "violation"


def test_an_unmeasured_report_says_why_and_what_next() -> None:
    """As an error, which readers tell from a failure."""
    error = parsed(UNMEASURED).find(".//error")
    assert error is not None
    assert "unseen-writer" in (error.text or "")
    assert "next: install strace 5.3 or newer" in (error.text or "")
    assert "This is not a pass." in (error.text or "")


def test_reasons_beside_a_violation_are_an_error_of_their_own() -> None:
    """What could not be judged is not hidden behind what was found."""
    both = dataclasses.replace(VIOLATION, unmeasured=(REASON,))
    assert outcomes(both) == {"kill": "failure", "judged": "error"}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_whatever_a_program_says_the_xml_is_well_formed(text: str) -> None:
    """Control characters, half characters and markup among it; the shape is that of plain words."""
    hostile = parsed(poisoned(full_report(), text))
    plain = parsed(poisoned(full_report(), "plain"))
    assert [each.tag for each in hostile.iter()] == [each.tag for each in plain.iter()]
    for each in hostile.iter():
        assert all(ch == "\n" or ch.isprintable() for ch in (each.text or "").strip() + "".join(each.attrib.values()))


def test_control_characters_let_through_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sabotage: with escaping alone the document is none."""
    monkeypatch.setattr(junit, "visible", lambda text: text)
    with pytest.raises((ElementTree.ParseError, UnicodeEncodeError)):
        parsed(poisoned(full_report(), TEXTS["zero"]))


def test_a_failed_control_is_an_error_where_the_report_is_unmeasured() -> None:
    """The lab's own checks are told with the reasons."""
    failed = Control(control="real-kill", passed=False, detail="2 of 8 real kills disagree")
    each = report(verdict="unmeasured", controls=(failed,), unmeasured=(REASON,))
    assert outcomes(each)["judged"] == "error"


@pytest.mark.parametrize("each", ALL, ids=lambda each: each.verdict)
def test_drawing_twice_gives_the_same_text(each: Report) -> None:
    """Nothing in it depends on when it was drawn."""
    assert render_junit([each]) == render_junit([each])
