"""The terminal view of ``crashlab doctor``: the answer first, then what works, then what is missing and what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crashlab.report.page import Page

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crashlab.doctor import Finding


def render_examined(
    findings: Sequence[Finding], *, works: bool, color: bool, width: int = 100, ascii_only: bool = False
) -> str:
    """All findings as text. ``works`` is whether the core does."""
    page = Page(color=color, width=width, ascii_only=ascii_only)
    here = [each for each in findings if each.works]
    lacking = [each for each in findings if not each.works]
    if works:
        page.line(("OK", "pass"), "  ", ("crashlab works here", "strong"))
    else:
        page.line(("BROKEN", "violation"), "  ", ("crashlab cannot judge anything here", "strong"))
    column = page.columns([each.name for each in findings], 30)
    page.blank()
    for each in here:
        page.line("  ", ("works   ", "pass"), " ", page.padded(each.name, column), "  ", (_about(each), "dim"))
    for each in lacking:
        word = ("BROKEN  ", "violation") if each.core else ("missing ", "unmeasured")
        lead = ("  ", word, " ", page.padded(each.name, column), "  ")
        page.paragraph(_about(each), indent=13 + column, first=lead)
        if each.next:
            page.paragraph(each.next, indent=13 + column, first=(" " * (13 + column),))
    return page.text()


def _about(finding: Finding) -> str:
    return "; ".join(part for part in (finding.detail, f"for {finding.needed_for}") if part)
