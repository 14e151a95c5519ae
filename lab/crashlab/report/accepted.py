"""Accepted findings in the terminal view: one line each, with its reason."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crashlab.report.message import headline
from crashlab.report.page import Page, count

if TYPE_CHECKING:
    from crashlab.report.model import Report


def with_accepted(report: Report) -> str:
    """What the word PASS is followed by: a pass with accepted findings must not read like one without."""
    return f" with {count(len(report.accepted), 'accepted finding')}" if report.accepted else ""


def draw_accepted(page: Page, report: Report) -> None:
    """Add one line per accepted finding, and its reason below it."""
    for each in report.accepted:
        page.labelled("accepted", page.fit(headline(each.finding), page.width - 14))
        page.labelled("", f"reason: {each.reason}", role="dim")
