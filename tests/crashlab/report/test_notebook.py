"""What a notebook shows: compact, alone, and safe."""

from __future__ import annotations

import dataclasses
import re
from typing import TYPE_CHECKING

import pytest

from crashlab.report import notebook, templating
from tests.crashlab.report.hostile import TEXTS, Outline, full_report, outside, poisoned
from tests.crashlab.report.samples import ALL, DUPLICATE, UNMEASURED, VIOLATION
from tests.crashlab.report.test_html import many

if TYPE_CHECKING:
    from crashlab.report.model import Report


@pytest.mark.parametrize("each", ALL, ids=lambda each: each.verdict)
def test_a_report_shows_itself(each: Report) -> None:
    """Verdict, sentence and counts, in whole elements."""
    text = each._repr_html_()
    outline = Outline(text)
    assert outline.wrong == []
    assert each.subject.name in outline.words
    assert len(text) < 20_000


def test_it_reaches_nothing_else_in_the_notebook() -> None:
    """No script, no style sheet, no id, no class, nothing that loads."""
    text = full_report()._repr_html_()
    outline = Outline(text)
    assert outside(text) == []
    assert {tag for tag, _ in outline.elements}.isdisjoint({"script", "style", "svg", "link"})
    assert {name for _, name, _ in outline.attributes} <= {"style", "scope", "colspan", "open"}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_nothing_that_a_program_says_becomes_markup(text: str) -> None:
    """Of a report, and of a finding by itself."""
    for hostile, plain in (
        (poisoned(full_report(), text), poisoned(full_report(), "plain")),
        (poisoned(DUPLICATE, text), poisoned(DUPLICATE, "plain")),
    ):
        assert Outline(hostile._repr_html_()).elements == Outline(plain._repr_html_()).elements


def test_escaping_switched_off_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sabotage: the test above turns red without autoescape."""
    naive = templating.environment().overlay(autoescape=False, finalize=lambda value: value)
    monkeypatch.setattr(templating, "environment", lambda: naive)
    elements = Outline(poisoned(DUPLICATE, TEXTS["script"])._repr_html_()).elements
    assert ("script", ()) in elements


def test_a_finding_shows_itself() -> None:
    """What ran, what was left, what recovery did, and how to see it again."""
    words = Outline(DUPLICATE._repr_html_()).words
    for each in ("kill@7", "mail to=ada", "checkpoint.json", "resume returned", "crashlab replay kill@7", "killed"):
        assert each in words


def test_many_findings_are_cut_and_counted() -> None:
    """A cell is no page."""
    text = many(500)._repr_html_()
    assert text.count("<summary") == notebook.FINDINGS_AT_MOST
    assert "490 more findings" in Outline(text).words


def test_an_unmeasured_report_is_no_pass() -> None:
    """It says so, and why."""
    words = Outline(UNMEASURED._repr_html_()).words
    assert "That is not a pass." in words
    assert "unseen-writer" in words


def test_badges_can_be_read_on_any_ground() -> None:
    """White on a dark ground of their own, whatever the theme."""
    text = dataclasses.replace(VIOLATION)._repr_html_()
    assert re.search(r"background:#[0-9a-f]{6};color:#fff", text)


def test_a_text_shows_nothing_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a notebook rich would show an empty output for each text that is made, also for one in an error."""
    shown: list[object] = []
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    monkeypatch.setattr("rich.jupyter.display", lambda *given: shown.append(given))
    assert "VIOLATION" in str(VIOLATION)
    assert shown == []
