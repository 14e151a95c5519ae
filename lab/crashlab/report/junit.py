"""The JUnit view: a test case per subject and fault, for every system that reads such files.

A fault with a violation is a failure, one that could not be judged is an error, one with no state to
judge is skipped. A report that is no pass never comes out as a file without failure and error: what no
fault accounts for has a test case of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree

from crashlab.report.page import count, printable
from crashlab.report.sentences import stood_by, verdict_sentence
from crashlab.report.text import bound_words, render_finding

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from crashlab.report.model import FaultCount, Finding, Report, UnmeasuredReason

FINDINGS_AT_MOST, MESSAGE_CHARACTERS = 50, 500
_WHOLE = "judged"


def render_junit(reports: Sequence[Report]) -> str:
    """An XML document: ``testsuites``, a ``testsuite`` per report, a ``testcase`` per fault. Pure ASCII."""
    root = ElementTree.Element("testsuites", name="crashlab")
    for report in reports:
        root.append(_suite(stood_by(report)))
    for name in ("tests", "failures", "errors", "skipped"):
        root.set(name, str(sum(int(suite.get(name, "0")) for suite in root)))
    root.set("time", f"{sum(report.seconds for report in reports):.3f}")
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def visible(text: str) -> str:
    r"""``text`` with everything that XML forbids, or that a reader cannot see, written as an escape.

    Line breaks stay. XML 1.0 has no way to write most control characters, not even as an entity.

    >>> visible("a\x00b\nc")
    'a\\x00b\nc'
    """
    return "\n".join(printable(line) for line in text.split("\n"))


def _suite(report: Report) -> ElementTree.Element:
    suite = ElementTree.Element("testsuite", name=visible(f"crashlab {report.subject.name}"))
    _properties(suite, _facts(report))
    cases = [_case(report, each) for each in report.faults]
    named = {each.fault for each in report.faults}
    others = [finding for finding in report.findings if finding.fault not in named]
    for fault in dict.fromkeys(finding.fault for finding in others):
        case = _new_case(report, fault, 0.0)
        _failure(case, report, [finding for finding in others if finding.fault == fault])
        cases.append(case)
    cases += _whole(report, cases)
    suite.extend(cases)
    suite.set("tests", str(len(cases)))
    for name, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(name, str(sum(case.find(tag) is not None for case in cases)))
    suite.set("time", f"{report.seconds:.3f}")
    if report.created:
        suite.set("timestamp", visible(report.created))
    return suite


def _case(report: Report, fault: FaultCount) -> ElementTree.Element:
    """One fault. What was found outweighs what could not be judged; the properties tell both."""
    case = _new_case(report, fault.fault, fault.seconds)
    found = [finding for finding in report.findings if finding.fault == fault.fault]
    accepted = [each.finding for each in report.accepted if each.finding.fault == fault.fault]
    verdict = _verdict(fault, found, accepted)
    if verdict == "violation" and report.verdict != "violation":
        verdict = "unmeasured"  # the lab does not stand by what it found
    counts = ("points", "states", "distinct", "judged", "consistent", "refused", "violation", "unmeasured", "sampled")
    _properties(
        case,
        [
            ("crashlab.verdict", verdict),
            *([("crashlab.accepted", str(len(accepted)))] if accepted else []),
            ("crashlab.ids", " ".join(finding.id for finding in found[:FINDINGS_AT_MOST])),
            *((f"crashlab.{name}", str(getattr(fault, name))) for name in counts),
        ],
    )
    if verdict == "violation":
        _failure(case, report, found, number=fault.violation)
    elif verdict == "unmeasured":
        number = count(fault.unmeasured or fault.violation, "crash state")
        _error(case, f"{number} could not be judged; this is not a pass", report.unmeasured)
    elif verdict == "skipped":
        words = f"no crash state of the fault {fault.fault} was there to judge"
        ElementTree.SubElement(case, "skipped", message=visible(words))
    return case


def _verdict(fault: FaultCount, found: Sequence[Finding], accepted: Sequence[Finding]) -> str:
    if found or (fault.violation and not accepted):
        return "violation"
    if fault.unmeasured:
        return "unmeasured"
    return "consistent" if fault.judged or fault.known else "skipped"


def _whole(report: Report, cases: Sequence[ElementTree.Element]) -> list[ElementTree.Element]:
    """A case for what is no fault's own: the lab's reasons for no verdict, or a verdict that no case shows."""
    failed = any(case.find("failure") is not None for case in cases)
    judged = any(case.find("skipped") is None for case in cases)
    case = _new_case(report, _WHOLE, 0.0)
    if report.verdict == "violation" and not failed:
        _failure(case, report, report.findings)
    elif report.unmeasured or report.verdict == "unmeasured" or not judged:
        _error(case, verdict_sentence(report) if report.verdict == "unmeasured" else "", report.unmeasured)
    else:
        return []
    return [case]


def _new_case(report: Report, name: str, seconds: float) -> ElementTree.Element:
    classname = visible(f"crashlab.{report.subject.name}")
    return ElementTree.Element("testcase", classname=classname, name=visible(name), time=f"{seconds:.3f}")


def _failure(
    case: ElementTree.Element, report: Report, findings: Sequence[Finding], *, number: int | None = None
) -> None:
    first = findings[0] if findings else None
    message = f"{first.kind}: {first.summary} [{first.id}]" if first else verdict_sentence(report)
    failed = ElementTree.SubElement(case, "failure", message=_short(message), type=visible(first.kind if first else ""))
    parts = [render_finding(finding, report.subject, color=False) for finding in findings[:FINDINGS_AT_MOST]]
    if number:
        parts.insert(0, f"{count(number, 'crash state')} of this fault broke a promise.\n")
    if left := len(findings) - FINDINGS_AT_MOST:
        parts += [f"{left} more findings: crashlab show"] if left > 0 else []
    failed.text = visible("\n".join(parts))


def _error(case: ElementTree.Element, message: str, reasons: Sequence[UnmeasuredReason]) -> None:
    first = f"{reasons[0].code}: {reasons[0].detail}" if reasons else "no reason was given"
    error = ElementTree.SubElement(case, "error", message=_short(message or first), type="unmeasured")
    lines = [f"{each.code}: {each.detail}" + (f"\nnext: {each.next}" if each.next else "") for each in reasons]
    error.text = visible("\n".join([*lines, "This is not a pass."]))


def _facts(report: Report) -> Iterable[tuple[str, str]]:
    yield "crashlab.verdict", report.verdict
    yield "crashlab.bound", bound_words(report)
    yield "crashlab.faults", ",".join(report.settings.faults)
    yield "crashlab.profile", ",".join(report.settings.profile)
    yield "crashlab.seed", str(report.settings.seed)
    yield "crashlab.run", report.run
    yield from ((f"crashlab.version.{name}", value) for name, value in report.versions.items())
    yield from ((f"crashlab.note.{n}", note) for n, note in enumerate(report.notes, start=1))


def _properties(element: ElementTree.Element, pairs: Iterable[tuple[str, str]]) -> None:
    holder = ElementTree.SubElement(element, "properties")
    for name, value in pairs:
        if value:
            ElementTree.SubElement(holder, "property", name=visible(name), value=visible(value))


def _short(message: str) -> str:
    text = visible(" ".join(message.split("\n")))
    return text if len(text) <= MESSAGE_CHARACTERS else f"{text[: MESSAGE_CHARACTERS - 1]}…"
