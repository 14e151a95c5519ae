"""The summary of a job on GitHub: below its limit, safe, and never silent about what it leaves out."""

from __future__ import annotations

import dataclasses
import re

import pytest

from crashlab.report import github
from crashlab.report.github import GITHUB_TAKES_BYTES, SUMMARY_BYTES, render_github
from tests.crashlab.report.hostile import TEXTS, full_report, poisoned
from tests.crashlab.report.samples import DUPLICATE, PASS, UNMEASURED, VIOLATION
from tests.crashlab.report.test_html import many
from tests.crashlab.report.test_markdown import read, shape


def test_the_table_comes_first_with_every_subject() -> None:
    """Verdict by sign and word."""
    text = render_github([PASS, VIOLATION, UNMEASURED])
    head = text.split("###", maxsplit=1)[0]
    assert re.findall(r"PASS|VIOLATION|UNMEASURED", head) == ["PASS", "VIOLATION", "UNMEASURED"]
    assert "✅ PASS" in head
    assert "⚠️ UNMEASURED" in head


def test_findings_can_be_unfolded() -> None:
    """Each is a details element whose inside is the text view, in a block."""
    outline = read(render_github([VIOLATION]))
    tags = [tag for tag, _ in outline.elements]
    assert tags.count("details") == tags.count("summary") == tags.count("pre") == 2
    assert "VIOLATION duplicate-effect: mail to=ada done 2 times, expected 1 [kill@7]" in outline.words
    assert outline.wrong == []


def test_an_unmeasured_report_says_why_and_what_next() -> None:
    """A summary that only counted would look like a pass."""
    words = read(render_github([UNMEASURED])).words
    assert "unmeasured, unseen-writer" in words
    assert "Next: install strace 5.3 or newer" in words
    assert "That is not a pass." in words


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_nothing_that_a_program_says_becomes_markup(text: str) -> None:
    """The elements are those of a report of plain words."""
    assert shape(render_github([poisoned(full_report(), text)])) == shape(
        render_github([poisoned(full_report(), "plain")])
    )


def test_ten_thousand_findings_stay_below_the_limit() -> None:
    """Those left out are counted."""
    text = render_github([many(10_000)])
    assert len(text.encode()) <= SUMMARY_BYTES < GITHUB_TAKES_BYTES
    shown = text.count("<details>") + len(re.findall(r"^\| [a-z-]+ \| <code>kill@\d+", text, re.MULTILINE))
    hidden = re.search(r"([\d,]+) more findings", text)
    assert hidden
    assert shown + int(hidden[1].replace(",", "")) == 10_000


def test_what_does_not_fit_is_left_out_whole_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """No part is cut in the middle, so no element is left open."""
    monkeypatch.setattr(github, "SUMMARY_BYTES", 6_000)
    long = dataclasses.replace(VIOLATION, findings=(DUPLICATE,) * 20)
    text = render_github([long])
    assert len(text.encode()) <= 6_000
    assert re.search(r"\*\*\d+ more parts of this summary left out", text)
    assert read(text).wrong == []
