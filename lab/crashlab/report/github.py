"""The GitHub view: Markdown for the summary of a job, ``crashlab report --format github >> $GITHUB_STEP_SUMMARY``.

GitHub drops a summary above 1 MiB and does not fail the job for it, so this one stays well below and says
what it left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from crashlab.report.accepted import with_accepted
from crashlab.report.markdown import block, code, words
from crashlab.report.page import count, duration
from crashlab.report.sentences import kind_words, stood_by, verdict_sentence
from crashlab.report.tables import WORDS, by_kind, fault_columns
from crashlab.report.text import bound_words, control_words, judged, not_asked, render_finding

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from crashlab.report.model import Finding, Report

GITHUB_TAKES_BYTES = 1024 * 1024
"""What GitHub takes as the summary of one step. Cited: its documentation of workflow commands."""
SUMMARY_BYTES = 768 * 1024
"""What we write at most: GitHub's own count may be another, and other steps write there too."""
_FINDINGS_IN_FULL, _FINDINGS_LISTED, _REPORTS_AT_MOST, _NOTES_AT_MOST = 50, 200, 200, 20
_TAIL_BYTES, _BLOCK_CHARACTERS = 400, 20_000
_SIGNS = {"consistent": "✅", "violation": "❌", "unmeasured": "⚠️"}


def render_github(reports: Sequence[Report]) -> str:
    """The summary of these reports, at most :data:`SUMMARY_BYTES` long; a part that does not fit is counted."""
    kept: list[str] = []
    room, left = SUMMARY_BYTES - _TAIL_BYTES, 0
    for part in _parts([stood_by(report) for report in reports]):
        size = len(part.encode()) + 1
        if left or size > room:
            left += 1
            continue
        kept.append(part)
        room -= size
    if left:
        kept.append(f"\n**{count(left, 'more part')} of this summary left out: it would be too large for GitHub.** ")
        kept.append("The run folder has them all: `report.html`, `report.json`, or `crashlab show`.\n")
    return "\n".join(kept).rstrip("\n") + "\n"


def _parts(reports: Sequence[Report]) -> Iterator[str]:
    """The summary in pieces that may be left out one by one, the most important first."""
    yield _overview(reports)
    for report in reports:
        yield _about(report)
    for report in reports:
        for finding in report.findings[:_FINDINGS_IN_FULL]:
            yield _in_full(report, finding)
        rest = report.findings[_FINDINGS_IN_FULL:]
        if rest:
            yield _listed(report, rest)


def _overview(reports: Sequence[Report]) -> str:
    lines = ["## crashlab", "", "| | subject | states | time | findings |", "|---|---|--:|--:|---|"]
    for report in reports[:_REPORTS_AT_MOST]:
        sign = f"{_SIGNS[report.verdict]} {WORDS[report.verdict]}{with_accepted(report)}"
        states, took = f"{judged(report):,}", duration(report.seconds)
        lines.append(f"| {sign} | {code(report.subject.name)} | {states} | {took} | {words(by_kind(report))} |")
    if hidden := len(reports[_REPORTS_AT_MOST:]):
        lines.append(f"| | {count(hidden, 'more subject')} | | | |")
    return "\n".join([*lines, ""])


def _about(report: Report) -> str:
    lines = [f"### {_SIGNS[report.verdict]} {code(report.subject.name)}", "", words(verdict_sentence(report))]
    lines += [""] if report.unmeasured else []
    for reason in report.unmeasured[:_NOTES_AT_MOST]:
        following = f" Next: {words(reason.next)}" if reason.next else ""
        lines += [f"- **unmeasured, {words(reason.code)}**: {words(reason.detail)}{following}"]
    if report.faults:
        names, rows = fault_columns(report.faults)
        lines += ["", f"| fault | {' | '.join(names)} |", f"|---{'|--:' * len(names)}|"]
        for each, row in zip(report.faults, rows, strict=True):
            lines.append(f"| {words(each.fault)} | {' | '.join(f'{number:,}' for number in row)} |")
    passed = sum(control.passed for control in report.controls)
    lines += ["", f"- bound: {words(bound_words(report))}", f"- controls: {passed} of {len(report.controls)} passed"]
    lines += [f"- failed: {words(control_words(control))}" for control in report.controls if not control.passed]
    lines += [f"- not asked: {words(not_asked(report))}"]
    lines += [f"- note: {words(note)}" for note in report.notes[:_NOTES_AT_MOST]]
    return "\n".join([*lines, ""])


def _in_full(report: Report, finding: Finding) -> str:
    """A finding to unfold; what is inside is the text view."""
    text = block(render_finding(finding, report.subject, color=False), at_most=_BLOCK_CHARACTERS)
    head = f"{words(finding.kind)} {code(finding.id)} {words(finding.summary, at_most=200)}"
    told = f"After this crash {words(kind_words(finding.kind))}."
    return f"<details><summary>{head}</summary>\n\n{told}\n\n{text}\n\n</details>\n"


def _listed(report: Report, findings: Sequence[Finding]) -> str:
    lines = ["| finding | id | what happened |", "|---|---|---|"]
    lines += [
        f"| {words(finding.kind)} | {code(finding.id)} | {words(finding.summary, at_most=200)} |"
        for finding in findings[:_FINDINGS_LISTED]
    ]
    if hidden := len(findings[_FINDINGS_LISTED:]):
        where = f"crashlab show --run {report.run}" if report.run else "crashlab show"
        lines += ["", f"{count(hidden, 'more finding')}: {code(where)}"]
    return "\n".join([*lines, ""])
