"""The crash matrix and the comparison: letters, folded runs, and no false claim in a folded line."""

from __future__ import annotations

import dataclasses
import re

from crashlab.report.model import FaultCount
from crashlab.report.page import Page
from crashlab.report.tables import fault_table
from crashlab.report.text import render_many
from tests.crashlab.report.samples import (
    ALL,
    PASS,
    REASON,
    VIOLATION,
    report,
    rows,
    text_of,
)


def test_the_matrix_has_a_letter_for_every_verdict_and_a_key() -> None:
    """Letters say the same as colours, and only those in use are explained."""
    text = text_of(VIOLATION)
    assert re.search(r"turn5\.tool2\.effect +50 +· +V +2 +duplicate-effect\n", text)
    assert re.search(r"end +51-52 +r +\? +4\n", text)
    assert "  · consistent   r refused   V violation   ? unmeasured\n" in text
    assert "  · consistent\n" in text_of(PASS)


def test_a_long_run_of_consistent_rows_is_folded() -> None:
    """Twenty quiet rows are three lines, and no state is forgotten in the count."""
    text = text_of(report(matrix=rows(20)))
    assert "  … 18 more, all consistent (54 states)\n" in text
    assert "turn1.A" in text
    assert "turn20.A" in text
    assert "turn10.A" not in text


def test_rows_without_a_state_are_never_called_consistent() -> None:
    """Where a budget ran out the rest was not tried, and a folded line says that."""
    blank = rows(9, before="", inside="", after="", states=0)
    text = text_of(report(verdict="unmeasured", unmeasured=(REASON,), matrix=(*rows(6), *blank)))
    assert "… 4 more, all consistent (12 states)\n" in text
    assert "… 7 more, not tried\n" in text


def test_a_short_run_is_not_folded() -> None:
    """Folding three rows would save nothing."""
    assert "more, all consistent" not in text_of(report(matrix=rows(3)))


def test_bad_rows_are_folded_only_with_their_like() -> None:
    """A violation never hides in a line that says consistent, nor under another kind."""
    bad = rows(9, after="violation", kinds=("lost",))
    odd = rows(1, after="violation", kinds=("torn",))
    text = text_of(dataclasses.replace(VIOLATION, matrix=(*bad, *odd)))
    assert "… 7 more, like the one above (21 states)" in text
    assert re.search(r"V +3 +torn\n", text)


def test_a_matrix_beyond_all_measure_is_cut_with_a_word_where_the_rest_is() -> None:
    """A hundred rows that all differ do not push the findings off the screen."""
    many = tuple(row for n in range(100) for row in rows(1, after="violation", kinds=(f"kind{n}",)))
    text = text_of(dataclasses.replace(VIOLATION, matrix=many))
    assert "… 60 more lines: crashlab show --json" in text


def test_several_reports_begin_with_a_comparison() -> None:
    """A line per subject, then each report whole."""
    text = render_many(ALL, color=False)
    table = text.split("\n\n")[0].splitlines()
    assert table[0].split() == ["subject", "verdict", "kill", "cuts", "time", "findings"]
    assert table[1].split() == ["agent", "PASS", "·", "31", "5", "1.1", "s", "none"]
    assert table[2].endswith("1 lost, 1 duplicate-effect")
    assert table[3].endswith("unmeasured: unseen-writer")
    for each in ALL:
        assert text_of(each) in text


def test_a_fault_has_a_column_of_its_own_with_its_worst_verdict() -> None:
    """A letter beside the number of states; blank where the subject was not asked for that fault."""
    kill = FaultCount(fault="kill", judged=140, consistent=140)
    power = FaultCount(fault="power", judged=92, consistent=22, violation=70)
    text = render_many([report(faults=(kill, power)), report(faults=(kill,))], color=False)
    table = text.split("\n\n")[0].splitlines()
    assert table[0].split()[2:4] == ["kill", "power"]
    assert table[1].split()[2:6] == ["·", "140", "V", "92"]
    assert table[2].split()[2:5] == ["·", "140", "0"]


def test_errors_and_crashes_of_recoveries_have_columns_of_their_own() -> None:
    """Where they were tried; a row in which they alone went wrong is never folded as consistent."""
    odd = rows(6, error="violation", nested="consistent", kinds=("lost",))
    text = text_of(report(matrix=(*rows(6, error="consistent", nested="consistent"), *odd)))
    head = next(line for line in text.splitlines() if "crash in" in line)
    assert head.split()[-4:] == ["after", "error", "nested", "states"]
    assert re.search(r"V +· +3 +lost\n", text)
    assert "… 4 more, all consistent (12 states)" in text
    assert "… 4 more, like the one above (12 states)" in text


def test_a_power_loss_has_a_column_in_the_matrix_where_one_was_tried() -> None:
    """A matrix without kills shows no empty columns for them."""
    text = text_of(report(matrix=rows(2, before="", inside="", after="", power="violation")))
    head = next(line for line in text.splitlines() if "crash in" in line)
    assert head.split()[-2:] == ["power", "states"]
    assert "before" not in head


def test_one_report_needs_no_comparison() -> None:
    """A single subject looks the same from either function."""
    assert render_many([PASS], color=False) == text_of(PASS)


def test_a_narrow_page_cuts_no_number() -> None:
    """Where the table does not fit, the figures are told in words."""
    fault = FaultCount(fault="kill", points=12_345, states=67_890, distinct=11_111, judged=11_111, consistent=22_222)
    page = Page(color=False, width=60, ascii_only=False)
    fault_table(page, [fault])
    text = page.text()
    assert "…" not in text
    for number in ("12,345", "67,890", "11,111", "22,222"):
        assert number in text
