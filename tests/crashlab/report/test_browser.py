"""The page in a real browser, from the disk: it loads nothing, complains of nothing, and works by keyboard."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

import pytest

from crashlab.report.html import render_html
from tests.crashlab.report.browser import Tab, browser
from tests.crashlab.report.hostile import TEXTS, full_report, poisoned
from tests.crashlab.report.samples import PASS
from tests.crashlab.report.test_html import many

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from crashlab.report.model import Report

FOCUSED = "(it => it.tagName + ' ' + (it.id || it.parentElement.id))(document.activeElement)"
TABS_AT_MOST = 40


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    """One browser for all tests here."""
    with browser(tmp_path_factory.mktemp("browser")) as made:
        yield made


def opened(tab: Tab, folder: Path, *reports: Report, fragment: str = "") -> Path:
    """A page of these reports, open in the tab."""
    path = folder / "report.html"
    path.write_text(render_html(reports), encoding="utf-8")
    tab.complaints.clear()
    tab.open(path, fragment)
    return path


@pytest.mark.parametrize("name", ["plain", *TEXTS])
def test_a_page_opens_without_complaint_and_asks_for_nothing(tab: Tab, tmp_path: Path, name: str) -> None:
    """Whatever the program under test is called: no console message, no request but for the page, no script of its."""
    each = full_report() if name == "plain" else poisoned(full_report(), TEXTS[name])
    path = opened(tab, tmp_path, each)
    assert tab.requests == [path.as_uri()]
    assert tab.complaints == []
    assert tab.value("document.scripts.length") == 1
    assert tab.value("document.querySelectorAll('.command button').length") == 1, "the script of the page has run"


def test_a_planted_request_and_a_planted_script_are_seen(tab: Tab, tmp_path: Path) -> None:
    """Sabotage: what the test above looks at notices a picture from outside, and a script that fails."""
    path = tmp_path / "planted.html"
    path.write_text("<img src='http://outside.example/a.png'><script>missing()</script>")
    tab.complaints.clear()
    tab.open(path)
    assert "http://outside.example/a.png" in tab.requests
    assert any("exception" in each for each in tab.complaints)
    assert any("ERR_NAME_NOT_RESOLVED" in each for each in tab.complaints)


def test_the_policy_stops_a_script_that_is_not_ours(tab: Tab, tmp_path: Path) -> None:
    """Were a value ever to get in unescaped, it still would not run, nor load anything."""
    path = opened(tab, tmp_path, PASS)
    page = path.read_text(encoding="utf-8")
    path.write_text(
        page.replace("<main", "<script>window.mine = 1</script><img src='http://outside.example/a.png'><main")
    )
    tab.open(path)
    assert tab.value("window.mine === undefined") is True
    assert tab.blocked == ["csp"]
    assert any("Content Security Policy" in each for each in tab.complaints)


def test_a_finding_is_reached_and_opened_by_keyboard(tab: Tab, tmp_path: Path) -> None:
    """Tab comes to the summary of the second finding, Enter opens it and closes it again."""
    opened(tab, tmp_path, full_report())
    for _ in range(TABS_AT_MOST):
        tab.press("Tab", 9)
        if tab.value(FOCUSED) == "SUMMARY r1f2":
            break
    assert tab.value(FOCUSED) == "SUMMARY r1f2"
    assert tab.value("getComputedStyle(document.activeElement).outlineStyle") == "solid", "the focus can be seen"
    assert tab.value("document.getElementById('r1f2').open") is False
    tab.press("Enter", 13)
    assert tab.value("document.getElementById('r1f2').open") is True
    tab.press("Enter", 13)
    assert tab.value("document.getElementById('r1f2').open") is False


def test_the_first_stop_skips_to_the_result(tab: Tab, tmp_path: Path) -> None:
    """As a reader with a screen reader expects."""
    opened(tab, tmp_path, full_report())
    tab.press("Tab", 9)
    assert tab.value("document.activeElement.className") == "skip"
    assert tab.value("document.activeElement.getBoundingClientRect().left >= 0") is True


def test_a_summary_taken_out_of_the_order_is_noticed(tab: Tab, tmp_path: Path) -> None:
    """Sabotage: with tabindex -1 on the summaries the walk by keyboard never comes to a finding."""
    path = opened(tab, tmp_path, full_report())
    page = path.read_text(encoding="utf-8")
    path.write_text(page.replace("<summary>", '<summary tabindex="-1">'), encoding="utf-8")
    tab.open(path)
    reached = set()
    for _ in range(TABS_AT_MOST):
        tab.press("Tab", 9)
        reached.add(tab.value(FOCUSED))
    assert "SUMMARY r1f2" not in reached


@pytest.mark.parametrize("way", ["link", "flag", "address"])
def test_a_link_opens_the_finding_that_it_leads_to(tab: Tab, tmp_path: Path, way: str) -> None:
    """From the list, from the time line, and from an address that somebody was sent."""
    opened(tab, tmp_path, full_report(), fragment="#r1f2" if way == "address" else "")
    if way != "address":
        tab.value(f"document.querySelector('{'.jump' if way == 'link' else 'svg'} a[href=\"#r1f2\"]').focus()")
        tab.press("Enter", 13)
    assert tab.value("new Promise(done => setTimeout(() => done(document.getElementById('r1f2').open), 0))") is True


def test_without_script_everything_is_there(tab: Tab, tmp_path: Path) -> None:
    """A reader who allows no script misses the buttons, and nothing else."""
    tab.ask("Emulation.setScriptExecutionDisabled", value=True)
    try:
        opened(tab, tmp_path, full_report())
        assert tab.value("document.querySelectorAll('button').length") == 0
        assert tab.value("document.querySelectorAll('details.finding').length") == 2
    finally:
        tab.ask("Emulation.setScriptExecutionDisabled", value=False)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1200, 390])
def test_the_page_has_its_colours_and_fits_its_window(tab: Tab, tmp_path: Path, width: int, dark: bool) -> None:
    """Dark where the reader likes it dark; nothing beyond the edge of a phone; text stands out; no blank picture."""
    tab.look(width=width, dark=dark)
    opened(tab, tmp_path, full_report())
    assert tab.value("document.documentElement.scrollWidth") <= width
    for element in ("body", ".soft", ".badge.violation", ".jump a", ".note"):
        assert contrast(tab, element) >= 4.5, element
    ground = tab.value("getComputedStyle(document.body).backgroundColor")
    assert (luminance(ground) < 0.1) is dark
    assert colours(tab.screenshot()) > 50


def test_a_large_page_is_there_at_once(tab: Tab, tmp_path: Path) -> None:
    """Ten thousand findings: the page is complete, and by far not too many elements for a browser."""
    opened(tab, tmp_path, many(10_000))
    assert tab.complaints == []
    assert tab.value("document.getElementById('status') !== null") is True, "the last element is there"
    assert tab.value("document.getElementsByTagName('*').length") < 60_000


def luminance(colour: str) -> float:
    """How bright a colour is to an eye, from 0 to 1, as WCAG 2 defines it."""
    parts = [float(each) / 255 for each in colour[colour.index("(") + 1 : -1].split(",")[:3]]
    linear = [each / 12.92 if each <= 0.03928 else ((each + 0.055) / 1.055) ** 2.4 for each in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(tab: Tab, selector: str) -> float:
    """Of the first such element: its text against what is behind it. WCAG 2 asks for 4.5."""
    ground = (
        f"(it => {{ for (; it; it = it.parentElement) {{ let c = getComputedStyle(it).backgroundColor;"
        f" if (!/, 0\\)$/.test(c)) return c; }} }})(document.querySelector('{selector}'))"
    )
    text = tab.value(f"getComputedStyle(document.querySelector('{selector}')).color")
    light, dark = sorted((luminance(text), luminance(tab.value(ground))), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def colours(png: bytes) -> int:
    """How many different rows of bytes a picture has: a blank one has one or two."""
    data, at = b"", 8
    while at < len(png):
        size, kind = int.from_bytes(png[at : at + 4]), png[at + 4 : at + 8]
        data += png[at + 8 : at + 8 + size] if kind == b"IDAT" else b""
        at += size + 12
    raw = zlib.decompress(data)
    width, height = int.from_bytes(png[16:20]), int.from_bytes(png[20:24])
    row = len(raw) // height
    assert row > width
    return len({raw[n * row + 1 : (n + 1) * row] for n in range(height)})


def test_a_blank_picture_is_noticed(tab: Tab, tmp_path: Path) -> None:
    """Sabotage: of a page with nothing on it, the picture has hardly two different rows."""
    path = tmp_path / "blank.html"
    path.write_text("<p hidden>nothing to see")
    tab.open(path)
    assert colours(tab.screenshot()) <= 2


def test_the_replay_line_is_copied_by_a_button(tab: Tab, tmp_path: Path) -> None:
    """It says for a reader what it copies, does it at Enter, and tells so where screen readers listen."""
    opened(tab, tmp_path, full_report(), fragment="#r1f2")
    tab.ask("Browser.grantPermissions", permissions=["clipboardReadWrite", "clipboardSanitizedWrite"])
    tab.value("document.querySelector('#r1f2 .command button').focus()")
    label = "document.querySelector('#r1f2 .command button').getAttribute('aria-label')"
    assert tab.value(label) == "Copy crashlab replay kill@7"
    tab.press("Enter", 13)
    told = (
        "new Promise(done => { const it = document.getElementById('status'); if (it.textContent) done(it.textContent);"
        " new MutationObserver(() => done(it.textContent)).observe(it, {childList: true}); })"
    )
    assert tab.value(told) == "Copied"
    assert tab.value("navigator.clipboard.readText()") == "crashlab replay kill@7"
