"""The terminal view: what it says, that it hides nothing, and that hostile text cannot break out of it."""

from __future__ import annotations

import dataclasses
import re

import pytest
from rich.cells import cell_len

from crashlab.faults import BUILT, DESIGNED
from crashlab.report.model import Control, DiskLine, Finding, Observed, OpLine, Report, SubjectInfo
from crashlab.report.text import render, render_finding, render_many
from tests.crashlab.report.samples import (
    ALL,
    CUT,
    DUPLICATE,
    HOSTILE,
    PASS,
    REASON,
    UNMEASURED,
    VIOLATION,
    count,
    finding_text,
    report,
    rows,
    text_of,
)

ANSI = re.compile(r"\x1b\[[0-9;]*m")


# --- verdicts --------------------------------------------------------------------------------------


def test_a_pass_says_what_it_claims_and_ends_with_its_line() -> None:
    """The verdict comes first, the bound and what was not asked are stated, the last line counts deaths."""
    text = text_of(PASS)
    assert text.startswith("PASS  agent: consistent within the stated bound\n")
    assert text.endswith("\nIt died 31 times and forgot nothing.\n")
    assert "every prefix, writes cut at page ends; 0 sampled beyond" in text
    assert "3 of 3: replay proof, 8 of 8 real kills agree, pinned path (namespace)" in text
    left = ", ".join(fault for fault in BUILT if fault != "kill")
    unbuilt = ", ".join(fault for fault in DESIGNED if fault not in BUILT)
    assert f"not asked  {left} (--faults all); {unbuilt} (not built yet)" in " ".join(text.split("\n"))
    assert re.search(r"kill +42 +47 +31 +5 +31 +0 +0\n", text)


def test_one_death_is_counted_in_the_singular() -> None:
    """A report of one state does not say "1 times"."""
    assert text_of(report(faults=(count(judged=1),))).endswith("It died once and forgot nothing.\n")


def test_damage_is_no_death() -> None:
    """The last line tells deaths and damage apart, and the bound of damage alone speaks of no prefix."""
    damaged = count(fault="damage", judged=7, refused=7)
    both = text_of(report(faults=(count(judged=1), damaged)))
    assert both.endswith("It died once and forgot nothing. It met damage 7 times and took none of it for good.\n")
    settings = dataclasses.replace(PASS.settings, faults=("damage:bit,damage:zeros",))
    alone = text_of(report(faults=(damaged,), settings=settings))
    assert alone.endswith("\nIt met damage 7 times and took none of it for good.\n")
    assert "bound      damage at rest to each file" in alone


def test_a_byte_cut_is_part_of_the_stated_bound() -> None:
    """``kill[cut=byte]`` claims more than ``kill``, and the page says so."""
    settings = dataclasses.replace(PASS.settings, faults=("kill[cut=byte]",))
    assert "every prefix, writes cut at every byte;" in text_of(report(settings=settings))


def test_the_bound_of_errors_says_what_a_smaller_budget_leaves_to_the_sample() -> None:
    """Of what is watched from outside, where each error is a run of its own under strace."""
    for recorder, errors, words in (
        ("strace", "sites", "each error at the first op of each site; 25 sampled beyond"),
        ("strace", "ops", "each error at each op; 25 sampled beyond"),
        ("python", "sites", "each error at each op; 25 sampled beyond"),
    ):
        settings = dataclasses.replace(PASS.settings, faults=("error",), recorder=recorder, budget={"errors": errors})
        text = text_of(report(settings=settings, faults=(count(fault="error", states=9, sampled=25),)))
        assert f"bound      {words}\n" in text


def test_a_violation_names_kinds_numbers_and_smallest_states_in_its_first_line() -> None:
    """pytest shows the first line only, so that it must be enough to go on."""
    first = text_of(VIOLATION).splitlines()[0]
    assert first == "VIOLATION  agent: lost, duplicate-effect in 9 of 31 crash states [kill@6+4085, kill@7]"


def test_a_replay_claims_nothing_of_other_states() -> None:
    """One state is not the stated bound."""
    text = text_of(report(faults=(count(points=1, states=1, distinct=1, judged=1, consistent=1),)))
    assert text.startswith("PASS  agent: consistent in the one state that was tried\n")
    assert "bound      one state; nothing is claimed of the others\n" in text
    assert "stated bound" not in text
    assert "crash in" not in text


def test_the_same_advice_is_given_once() -> None:
    """Three reasons with one remedy are not three times the same line."""
    text = text_of(report(verdict="unmeasured", unmeasured=(REASON, REASON, REASON)))
    assert text.count("unseen-writer. ") == 3
    assert text.count("install strace") == 1


def test_findings_keep_the_order_of_the_report() -> None:
    """The report has sorted them; the view does not know better."""
    text = text_of(VIOLATION)
    assert text.index("VIOLATION lost: ") < text.index("VIOLATION duplicate-effect: ")
    turned = text_of(dataclasses.replace(VIOLATION, findings=VIOLATION.findings[::-1]))
    assert turned.index("VIOLATION duplicate-effect: ") < turned.index("VIOLATION lost: ")


def test_a_violation_never_ends_like_a_pass() -> None:
    """The proud line is for a pass alone."""
    assert "forgot nothing" not in text_of(VIOLATION) + text_of(UNMEASURED)


def test_unmeasured_says_why_what_next_and_that_it_is_no_pass() -> None:
    """The whole text of the plainest case."""
    assert text_of(UNMEASURED) == (
        "UNMEASURED  store: unseen-writer. checkpoint.db changed, but no op explains it.\n"
        "  sqlite3 writes from C; strace sees that.\n"
        "  next   install strace 5.3 or newer\n"
        "This is not a pass.\n"
    )


def test_unmeasured_with_states_still_shows_what_was_tried() -> None:
    """A budget that ran out has judged something; the end is the same."""
    text = text_of(report(verdict="unmeasured", unmeasured=(REASON,)))
    assert re.search(r"kill +42 ", text)
    assert text.endswith("This is not a pass.\n")


def test_a_violation_with_something_unmeasured_says_both() -> None:
    """Violation outranks, but the reasons are not swallowed."""
    text = text_of(dataclasses.replace(VIOLATION, unmeasured=(REASON,)))
    assert "unmeasured unseen-writer. checkpoint.db changed" in text
    assert "install strace 5.3 or newer" in text


def test_a_failed_control_stands_out() -> None:
    """Not only the count changes: the failed one has a line."""
    controls = (*PASS.controls, Control(control="round-trip", passed=False, detail="saved 1, loaded 2"))
    text = text_of(report(controls=controls))
    assert "3 of 4: " in text
    assert "failed: round trip (saved 1, loaded 2)" in text


# --- colours, width, hostile text -------------------------------------------------------------------


@pytest.mark.parametrize("each", ALL, ids=lambda each: each.verdict)
def test_colours_change_nothing_but_colours(each: Report) -> None:
    """With the colours taken out both texts are the same, so nothing is said by colour alone."""
    colored = render(each, color=True)
    assert "\x1b[" in colored
    assert ANSI.sub("", colored) == text_of(each)
    assert "\x1b" not in text_of(each)


@pytest.mark.parametrize("width", [60, 80, 100])
@pytest.mark.parametrize("ascii_only", [False, True])
def test_nothing_is_wider_than_the_page(width: int, *, ascii_only: bool) -> None:
    """Also not with wide characters and endless words, in any place of the report."""
    long = "漢字" * 80 + "x" * 300
    finding = dataclasses.replace(
        DUPLICATE,
        summary=long,
        why=long,
        advice=(long,),
        directory=long,
        place=long,
        ops=(OpLine(n=1, op=long, text=long, note=long), OpLine(n=2, op="write", text=long, at=long)),
        disk=(DiskLine(path=long, type="file", state=long),),
        observed=Observed(how="raised", error=long, stdout=long),
    )
    each = dataclasses.replace(
        VIOLATION,
        findings=(finding,),
        subject=SubjectInfo(name=long, kind="Store", source=long),
        matrix=(dataclasses.replace(rows(1)[0], place=long, kinds=(long,)),),
        notes=(long,),
        run=long,
    )
    text = render_many([each, PASS], color=False, width=width, ascii_only=ascii_only)
    lines = text.splitlines()
    (look,) = [line for line in lines if line.startswith("  look ")]
    assert cell_len(look) > width, "a path is there to be copied, so it is neither cut nor wrapped"
    assert max(cell_len(line) for line in lines if line != look) <= width


def test_what_is_cut_has_an_ellipsis() -> None:
    """Nobody takes the beginning of a name for the whole."""
    long = dataclasses.replace(CUT, disk=(DiskLine(path="p" * 200, type="file"),))
    assert "p… " in finding_text(long)
    text = render_finding(long, SubjectInfo(name="agent", kind="Log"), color=False, ascii_only=True)
    assert "p... " in text


@pytest.mark.parametrize("each", ALL, ids=lambda each: each.verdict)
def test_ascii_only_is_ascii(each: Report) -> None:
    """An old terminal gets letters that it has."""
    text = render(each, color=False, ascii_only=True)
    assert text.isascii()
    assert "  . consistent" in text or each is UNMEASURED


def hostile_report() -> Report:
    """A report with the hostile name in every field that holds text."""
    finding = Finding(
        id=HOSTILE,
        verdict="violation",
        kind=HOSTILE,
        fault=HOSTILE,
        summary=HOSTILE,
        place=HOSTILE,
        contract=HOSTILE,
        profiles=(HOSTILE,),
        ops=(OpLine(n=1, op=HOSTILE, text=HOSTILE, at=HOSTILE), OpLine(n=2, op="write", text="a", note=HOSTILE)),
        fault_line=HOSTILE,
        disk=(DiskLine(path=HOSTILE, type=HOSTILE, digest=HOSTILE, state=HOSTILE),),
        observed=Observed(how="raised", error=HOSTILE, stdout=HOSTILE, stderr=HOSTILE, step=HOSTILE),
        expected=(HOSTILE,),
        effects=dataclasses.replace(DUPLICATE.effects, observed=(HOSTILE,)),
        why=HOSTILE,
        advice=(HOSTILE,),
        same_count=1,
        same=(HOSTILE,),
        digest=HOSTILE,
        confirmed=HOSTILE,
        replay=HOSTILE,
        directory=HOSTILE,
    )
    return dataclasses.replace(
        VIOLATION,
        findings=(finding,),
        subject=SubjectInfo(name=HOSTILE, kind=HOSTILE, source=HOSTILE),
        controls=(Control(control=HOSTILE, passed=False, detail=HOSTILE),),
        unmeasured=(dataclasses.replace(REASON, code=HOSTILE, detail=HOSTILE, next=HOSTILE),),
        matrix=(dataclasses.replace(rows(1)[0], place=HOSTILE, kinds=(HOSTILE,)),),
        notes=(HOSTILE,),
        run=HOSTILE,
    )


@pytest.mark.parametrize("color", [False, True])
def test_hostile_text_reaches_no_terminal(*, color: bool) -> None:
    """No control character, no escape of the subject's, no half character in any field comes through."""
    text = ANSI.sub("", render_many([hostile_report(), PASS], color=color))
    assert all(character.isprintable() or character == "\n" for character in text)
    text.encode("utf-8")
    assert r"a\x1b[31mred\x07" in text
    assert r"\udc80 \u202e [bold]x[/bold] \x9b2J" in text
