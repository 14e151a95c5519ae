"""A report as the message of an error: what a test runner prints under a failed test.

The gravest finding of each fault in full, each further one in a line, then where the rest is. The first line
stands by itself and is never cut: a runner repeats it in its summary.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from crashlab.report.accepted import draw_accepted
from crashlab.report.finding import draw_finding
from crashlab.report.page import LABEL_WIDTH, Page, count, printable

if TYPE_CHECKING:
    from crashlab.report.model import Finding, Report

_MORE_AT_MOST = 6


def message(report: Report) -> str:
    """The message for a report that has findings."""
    first = report.findings[0]
    full = {finding.fault: finding for finding in reversed(report.findings)}  # the gravest one of each fault
    told = [finding for finding in report.findings if full[finding.fault] is finding]
    others = [finding for finding in report.findings if full[finding.fault] is not finding]
    page = Page(color=False)
    for finding in told:
        page.blank()
        draw_finding(page, finding, report.subject)
    _, _, rest = page.text().partition("\n")
    page = Page(color=False)
    page.blank()
    for position, finding in enumerate(others[:_MORE_AT_MOST]):
        page.labelled("" if position else "and also", page.fit(headline(finding), page.width - 20))
    if len(others) > _MORE_AT_MOST:
        page.labelled("", f"… {count(len(others) - _MORE_AT_MOST, 'more finding')}")
    draw_accepted(page, report)
    for reason in report.unmeasured:
        page.labelled("unmeasured", f"{reason.code}. {reason.detail}")
    for position, note in enumerate(report.notes):
        page.labelled("" if position else "note", note)
    if report.run:
        lead = ("  ", ("all of it".ljust(LABEL_WIDTH), "label"))
        page.whole(f"crashlab show --run {report.run}", first=lead, role="command")
    return f"VIOLATION {printable(headline(first))}\n{rest}\n{page.text()}".rstrip("\n")


def headline(finding: Finding) -> str:
    """One finding in one line that is complete by itself.

    >>> from crashlab.report.model import Finding
    >>> headline(Finding(id="kill@7", verdict="violation", kind="torn", fault="kill", summary="half a value"))
    'torn: half a value [kill@7]'
    """
    return f"{finding.kind}: {finding.summary} [{finding.id}]"
