"""What a notebook shows of a report or a finding that is the last thing in a cell.

Compact, and alone: styles stand on each element, since a style sheet would reach the rest of the
notebook, and there is no script. Text has the colour of its surroundings.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from crashlab.report.finding_view import finding_view
from crashlab.report.html import Limits, report_view
from crashlab.report.model import SubjectInfo
from crashlab.report.sentences import stood_by
from crashlab.report.templating import template_module

if TYPE_CHECKING:
    from crashlab.report.model import Finding, Report

FINDINGS_AT_MOST = 10
_LIMITS = Limits(cards=0, rows=0, jumps=0, matrix=1, notes=10)


def report_html(report: Report) -> str:
    """The report: its verdict, what was tried, and the first findings to unfold."""
    parts, report = template_module("notebook.html.j2"), stood_by(report)
    views = [
        finding_view(finding, report.subject, key="", number=number, opened=number == 1)
        for number, finding in enumerate(report.findings[:FINDINGS_AT_MOST], start=1)
    ]
    view = report_view(report, "", _LIMITS, opened=False)
    cards = [parts.finding(each) for each in views]
    return str(parts.report({**view, "cards": cards, "hidden": len(report.findings[FINDINGS_AT_MOST:])}))


def finding_html(finding: Finding) -> str:
    """One finding, unfolded. It does not know its subject, so recovery is told as that of a program."""
    view = finding_view(finding, SubjectInfo(name="", kind="Subject"), key="", number=1, opened=True)
    return str(template_module("notebook.html.j2").finding(view))
