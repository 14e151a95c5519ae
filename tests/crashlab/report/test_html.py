"""The page: whole, safe whatever the program under test is called, small whatever the report is, and complete."""

from __future__ import annotations

import dataclasses
import re
from collections import Counter

import pytest

from crashlab.report import html, templating
from crashlab.report.html import PAGE_BYTES, render_html
from crashlab.report.model import Finding, Observed, OpLine, Report
from tests.crashlab.report.hostile import TEXTS, Outline, full_report, outside, poisoned
from tests.crashlab.report.samples import ALL, DUPLICATE, PASS, REASON, UNMEASURED, VIOLATION, report, rows

CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")


def complaints(text: str) -> list[str]:
    """What is wrong with a page of a report that is full of ``text``."""
    plain = Outline(render_html([poisoned(full_report(), "plain")]))
    page = render_html([poisoned(full_report(), text)])
    outline = Outline(page)
    found = outline.wrong + outside(page)
    if "\n" not in text and outline.elements != plain.elements:
        found.append("it has other elements than a plain one")
    more = Counter(tag for tag, _ in outline.elements) - Counter(tag for tag, _ in plain.elements)
    if set(more) - {"p"}:  # the detail of a reason has a paragraph per line
        found.append(f"it has more of {sorted(more)}")
    if CONTROLS.search(page.replace("\n", "")):
        found.append("a control character stands in it as it is")
    return found


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_nothing_that_a_program_says_becomes_part_of_the_page(text: str) -> None:
    """Elements and attributes are those of a report of plain words; control characters are visible escapes."""
    assert complaints(text) == []


def test_escaping_switched_off_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sabotage: without autoescape a file name is a script, and the test above says so."""
    naive = templating.environment().overlay(autoescape=False, finalize=lambda value: value)
    for module in (templating, html):
        monkeypatch.setattr(module, "environment", lambda: naive)
    assert any(re.search("more of .*'script'", each) for each in complaints(TEXTS["script"]))
    assert any("onmouseover" in each for each in complaints(TEXTS["attributes"]))


def test_hidden_characters_let_through_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sabotage: with escaping alone, a name may still turn the text round it."""
    naive = templating.environment().overlay(finalize=lambda value: value)
    for module in (templating, html):
        monkeypatch.setattr(module, "environment", lambda: naive)
    assert complaints(TEXTS["turned round"]) == ["a control character stands in it as it is"]


@pytest.mark.parametrize(
    "planted", ["<img src='http://a/b.png'>", "<a href='http://a'>x</a>", "<p onclick='a()'>x</p>"]
)
def test_a_request_to_the_outside_is_noticed(planted: str) -> None:
    """Sabotage: each of these on a page is named by the check that the tests here use."""
    page = render_html([PASS])
    assert outside(page) == []
    assert len(outside(page.replace("<main", f"{planted}<main"))) >= 1


@pytest.mark.parametrize("each", ALL, ids=lambda each: each.verdict)
def test_a_page_of_each_verdict_is_whole(each: Report) -> None:
    """Every element is closed, every id is one, every link leads to one."""
    page = render_html([each])
    outline = Outline(page)
    assert outline.wrong == []
    ids = [value for _, name, value in outline.attributes if name == "id"]
    assert len(ids) == len(set(ids))
    targets = [value for _, name, value in outline.attributes if name == "href"]
    assert {target.removeprefix("#") for target in targets} <= set(ids)
    for _, name, value in outline.attributes:
        if name in ("aria-labelledby", "aria-describedby"):
            assert value in ids
    assert page.startswith("<!DOCTYPE html>")


def test_the_verdict_comes_first_in_a_sentence() -> None:
    """What a newcomer reads is no table, and no pass is claimed where there was none."""
    words = Outline(render_html([VIOLATION])).words
    assert words.index("After 9 of 31 crash states (kills) it broke a promise") < words.index("What was tried")
    assert "That is not a pass." in Outline(render_html([UNMEASURED])).words
    assert "All 31 crash states that were tried (kills) led to what was demanded." in Outline(render_html([PASS])).words


def test_tables_have_captions_and_scopes() -> None:
    """Somebody who hears the page knows which table it is, and to what a number belongs."""
    page = render_html([full_report()])
    assert page.count("<table") == page.count("<caption>")
    for element in re.findall(r"<th\b[^>]*>", page):
        assert 'scope="' in element


def test_no_verdict_is_told_by_colour_alone() -> None:
    """Each cell of the matrix and each badge has a letter or a word."""
    page = render_html([full_report()])
    cells = re.findall(r'<td class="cell (\w*)">(.*?)</td>', page)
    assert {verdict for verdict, _ in cells} >= {"consistent", "violation", "refused", "unmeasured", ""}
    for verdict, inside in cells:
        assert bool(re.sub(r"<[^>]*>", "", inside).strip()) == bool(verdict)


def test_every_field_of_a_finding_is_on_the_page() -> None:
    """A field that changes changes the page: nothing in the model is invisible."""
    finding = full_report().findings[1]

    def drawn(each: Finding) -> str:
        return render_html([dataclasses.replace(VIOLATION, findings=(each,))])

    changed: dict[str, object] = {
        "ops": finding.ops[1:],
        "disk": (),
        "changes": (),
        "observed": Observed(how="hang"),
        "effects": dataclasses.replace(finding.effects, observed=()),
        "same_count": 23,
        "same": ("kill@9",),
        "profiles": (),
        "expected": (),
        "advice": (),
        "crashes": ("killed; then recovery",),
        "verdict": "unmeasured",
        "contract": None,
        "confirmed": None,
    }
    for each in dataclasses.fields(Finding):
        value = changed.get(each.name, "other")
        assert drawn(dataclasses.replace(finding, **{each.name: value})) != drawn(finding), each.name  # type: ignore[arg-type]  # any field


def test_bytes_that_differ_stand_side_by_side() -> None:
    """Hexadecimal and ASCII of both sides, the differing ones marked, and how many are not shown."""
    page = render_html([full_report()])
    assert (
        '<th scope="row">000010</th><td><mark>41 42</mark></td><td><mark>AB</mark></td><td><mark>43</mark></td>' in page
    )
    assert "37 bytes differ, the first 2 of them are shown; the file as it was left is below" in Outline(page).words


def test_several_reports_stand_below_one_table() -> None:
    """The table has a row per report that leads to it; a finding is reached from its own report."""
    page = render_html([VIOLATION, PASS, UNMEASURED])
    outline = Outline(page)
    assert [value for tag, name, value in outline.attributes if (tag, name) == ("section", "id")] == ["r1", "r2", "r3"]
    assert "3 subjects." in outline.words
    assert {'href="#r1f1"', 'href="#r2"', 'id="r1f1"'} <= set(re.findall(r'(?:href|id)="[^"]*"', page))
    assert "3 subjects." not in Outline(render_html([PASS])).words


def test_no_report_is_no_page() -> None:
    """An empty page would look like a pass."""
    with pytest.raises(ValueError, match="no report"):
        render_html([])


def many(number: int, **fields: object) -> Report:
    """A report of so many findings, of five kinds in turn."""
    kinds = ("torn", "lost", "duplicate-effect", "hole", "stuck")
    ops = tuple(OpLine(n=n, op="write", text=f"file{n}  100 bytes at 0") for n in range(1, 15))
    findings = tuple(
        dataclasses.replace(DUPLICATE, id=f"kill@{n}", kind=kinds[n * 5 // (number + 1)], ops=ops, **fields)  # type: ignore[arg-type]  # any field
        for n in range(1, number + 1)
    )
    return dataclasses.replace(VIOLATION, findings=findings)


def test_ten_thousand_findings_fit_on_a_page_that_says_what_it_leaves_out() -> None:
    """Each kind is there in full; cards, rows and what is hidden come to all of them."""
    page = render_html([many(10_000)])
    assert len(page.encode()) < PAGE_BYTES / 2
    outline = Outline(page)
    cards = sum(tag == "details" and "id" in names for tag, names in outline.elements)
    briefs = sum(int(number.replace(",", "")) for number in re.findall(r"([\d,]+) more of this kind", page))
    hidden = re.search(r"<strong>([\d,]+) findings are not on this page", page)
    assert hidden
    assert cards + briefs + int(hidden[1].replace(",", "")) == 10_000
    for kind in ("torn", "lost", "duplicate-effect", "hole", "stuck"):
        assert re.search(rf"</span> {kind} <code", page), kind
    assert "crashlab show" in outline.words


def test_no_page_is_larger_than_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where every text is as long as it can be, less is drawn, and what is drawn is whole."""
    monkeypatch.setattr(html, "PAGE_BYTES", 1_000_000)
    long = "<&>" * 700
    page = render_html([poisoned(many(200), long), *[many(3) for _ in range(150)]])
    assert len(page.encode()) <= 1_000_000
    assert Outline(page).wrong == []
    assert re.search(r"\d+ more reports are not on it", page)


def test_a_long_matrix_and_long_lists_are_cut_and_say_so() -> None:
    """Nothing is left out in silence."""
    odd = tuple(
        dataclasses.replace(row, place=f"p{n}", states=n % 7, inside="refused" if n % 2 else "")
        for n, row in enumerate(rows(900))
    )
    words = Outline(render_html([report(matrix=odd, notes=tuple(f"note {n}" for n in range(80)))])).words
    assert re.search(r"[\d,]+ more lines are in report\.json", words)
    assert "30 more notes are in report.json" in words


def test_all_reasons_of_an_unmeasured_report_are_told() -> None:
    """With what to do next."""
    words = Outline(render_html([dataclasses.replace(UNMEASURED, unmeasured=(REASON, REASON))])).words
    assert words.count("unseen-writer") >= 2
    assert "Next: install strace 5.3 or newer" in words


def test_drawing_twice_gives_the_same_page() -> None:
    """Nothing on the page depends on when it was drawn, or on the order of a set."""
    assert render_html([full_report()]) == render_html([full_report()])
