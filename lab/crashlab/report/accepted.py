"""Accepted findings in the terminal view: one line each, with the reason."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crashlab.report.page import Page, count

if TYPE_CHECKING:
    from crashlab.report.model import Report


def with_accepted(report: Report) -> str:
    """What the word PASS is followed by: a pass with accepted findings must not read like one without."""
    return f" with {count(len(report.accepted), 'accepted finding')}" if report.accepted else ""


def accepted_lines(report: Report) -> list[str]:
    """One line per accepted finding: what it is, and why it is lived with."""
    lines = []
    for each in report.accepted:
        finding = each.finding
        where = f" at {finding.place}" if finding.place else ""
        lines.append(f"{finding.kind}{where} [{finding.id}]: {each.reason}")
    return lines


def draw_accepted(page: Page, report: Report) -> None:
    """Add these lines."""
    for position, line in enumerate(accepted_lines(report)):
        page.labelled("" if position else "accepted", page.safe(line))
