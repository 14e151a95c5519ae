"""The terminal view: what it says, that it hides nothing, and that hostile text cannot break out of it."""

from __future__ import annotations

import dataclasses
import re

import pytest
from rich.cells import cell_len

from crashlab.report.model import Control, DiskLine, Effects, Finding, Observed, OpLine, Report, SubjectInfo
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
    report,
    rows,
)

ANSI = re.compile(r"\x1b\[[0-9;]*m")


def text_of(each: Report) -> str:
    """The report without colours."""
    return render(each, color=False)


def finding_text(finding: Finding, kind: str = "Subject") -> str:
    """The finding by itself, without colours."""
    return render_finding(finding, SubjectInfo(name="agent", kind=kind), color=False)


# --- verdicts --------------------------------------------------------------------------------------


def test_a_pass_says_what_it_claims_and_ends_with_its_line() -> None:
    """The verdict comes first, the bound and what was not asked are stated, the last line counts deaths."""
    text = text_of(PASS)
    assert text.startswith("PASS  agent: consistent within the stated bound\n")
    assert text.endswith("\nIt died 31 times and forgot nothing.\n")
    assert "every prefix, writes cut at page ends; 0 sampled beyond" in text
    assert "3 of 3: replay proof, 8 of 8 real kills agree, pinned path (namespace)" in text
    assert "not asked  power, error, damage, recovery, connection, server, race (not built yet)" in text
    assert re.search(r"kill +42 +47 +31 +5 +31 +0 +0\n", text)


def test_one_death_is_counted_in_the_singular() -> None:
    """A report of one state does not say "1 times"."""
    assert text_of(report(faults=(count(judged=1),))).endswith("It died once and forgot nothing.\n")


def test_a_byte_cut_is_part_of_the_stated_bound() -> None:
    """``kill[cut=byte]`` claims more than ``kill``, and the page says so."""
    settings = dataclasses.replace(PASS.settings, faults=("kill[cut=byte]",))
    assert "every prefix, writes cut at every byte;" in text_of(report(settings=settings))


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


# --- one finding -----------------------------------------------------------------------------------


def test_a_finding_reads_as_the_specification_draws_it() -> None:
    """The whole text of a finding, to the column."""
    assert finding_text(DUPLICATE) == (
        "VIOLATION duplicate-effect: mail to=ada done 2 times, expected 1 [kill@7]\n"
        "\n"
        "  agent   Subject(run)   EO   turn5.tool2.effect+\n"
        "\n"
        "    5  fsync       .\n"
        "    6  save point  B\n"
        "    7  effect      mail to=ada                     <-- done; nothing on disk knows\n"
        "       ---------- killed ----------\n"
        "\n"
        "  on disk    checkpoint.json  182 bytes, as at op 6   91ab33cd\n"
        "             notes            directory\n"
        '  recovery   resume returned {"n": 3}\n'
        "  stdout     resumed at turn 5\n"
        "  stderr     warning: no journal\n"
        '  expected   once; or lab.unknown("mail")\n'
        "  effects    mail to=ada  2 times, uncrashed once (before the crash, recovery)\n"
        "             search q=x   once (recovery)\n"
        "  possible   ext4, xfs with default options\n"
        "\n"
        "  why        No save point says that the call was about to run, so resume runs it again.\n"
        "  advice     Make the pending call durable before op 7 (save point A). Or give it a key.\n"
        "  also       22 more states: kill@8, kill@9, …\n"
        "  confirmed  a real kill gave the same state\n"
        "  replay     crashlab replay kill@7\n"
        "  look       .crashlab/latest/kill@7\n"
        "  state      kill, digest 00ff00ff00ff\n"
    )


def test_a_long_summary_keeps_the_first_line_whole_and_is_told_in_full() -> None:
    """The id stays in the first line, nothing of the summary is lost."""
    summary = "a file " * 30 + "is gone"
    text = finding_text(dataclasses.replace(CUT, summary=summary))
    first, _, rest = text.partition("\n")
    assert first.endswith("… [kill@6+4085]")
    assert len(first) <= 100
    assert summary in " ".join(rest.split())


def test_a_summary_that_recovery_repeats_is_not_told_three_times() -> None:
    """What was cut off is the error, and the line of the recovery has it whole."""
    error = "ValueError: " + "very " * 40 + "wrong"
    observed = Observed(how="raised", error=error)
    text = finding_text(dataclasses.replace(CUT, summary=f"resume raised {error}", observed=observed))
    assert " ".join(text.split()).count("wrong") == 1


def test_effects_of_a_recovery_that_stopped_are_only_counted() -> None:
    """What it did not get to is no fault of its own; of a wrong effect every word is shown."""
    stopped = dataclasses.replace(DUPLICATE, kind="stuck", observed=Observed(how="raised", error="E: x"))
    assert "  effects    3 of 2 done so far\n" in finding_text(stopped)
    assert "uncrashed once" in finding_text(dataclasses.replace(stopped, kind="duplicate-effect"))


def test_unknown_effects_are_told_apart_from_done_ones() -> None:
    """A report of "unknown" is not an occurrence."""
    effects = Effects(expected=("mail to=ada",), observed=("recovery reported unknown: mail to=ada",))
    text = finding_text(dataclasses.replace(DUPLICATE, kind="needless-unknown", effects=effects))
    assert "mail to=ada  never, reported unknown, uncrashed once" in text


def test_a_traceback_is_not_shown_twice() -> None:
    """What was printed before it stays; the error has its line."""
    stderr = 'warning: x\nTraceback (most recent call last):\n  File "a.py"\nValueError: no\n'
    text = finding_text(
        dataclasses.replace(CUT, observed=Observed(how="raised", error="ValueError: no", stderr=stderr))
    )
    assert "stderr     warning: x\n" in text
    assert "Traceback" not in text
    assert "Traceback" in finding_text(dataclasses.replace(CUT, observed=Observed(how="returned", stderr=stderr)))


def test_a_cut_write_says_how_much_of_it_is_there() -> None:
    """The number is in the id, and the note spells it out."""
    assert re.search(r"20,031 bytes at 11 +<-- cut after 4,085 bytes\n", finding_text(CUT))


def test_a_lost_write_says_that_it_never_arrived() -> None:
    """The note of power loss in words."""
    lost = dataclasses.replace(CUT, ops=(OpLine(n=3, op="write", text="a  8 bytes at 0", note="lost"),))
    assert "<-- never reached the disk\n" in finding_text(lost)


def test_threads_are_named_where_there_are_several() -> None:
    """An interleaving cannot be understood without them."""
    assert "  call   t0  append(1 event)\n" in finding_text(CUT)
    assert "  t0  " not in finding_text(DUPLICATE)


def test_every_field_of_a_finding_is_shown() -> None:
    """A field that changes changes the text: nothing in the model is invisible."""
    text = finding_text(DUPLICATE)
    changes: dict[str, object] = {
        "ops": DUPLICATE.ops[1:],
        "disk": (),
        "observed": Observed(how="hang"),
        "effects": dataclasses.replace(DUPLICATE.effects, observed=()),
        "same_count": 23,
        "same": ("kill@9",),
        "profiles": (),
        "expected": (),
        "advice": (),
        "verdict": "unmeasured",
        "contract": None,
        "confirmed": None,
    }
    for each in dataclasses.fields(Finding):
        value = changes.get(each.name, "other")
        assert finding_text(dataclasses.replace(DUPLICATE, **{each.name: value})) != text, each.name  # type: ignore[arg-type] # any field


@pytest.mark.parametrize(
    ("observed", "kind", "words"),
    [
        (Observed(how="returned", value={"n": 3}), "Store", 'load() returned {"n": 3}'),
        (Observed(how="returned"), "Store", "load() returned null"),
        (Observed(how="returned"), "Subject", "resume returned\n"),
        (Observed(how="raised", error="ValueError: no"), "Log", "load() raised ValueError: no"),
        (Observed(how="exit", error="code 3"), "Subject", "resume ended the process: code 3"),
        (Observed(how="signal", error="SIGSEGV"), "Subject", "resume was killed by a signal: SIGSEGV"),
        (Observed(how="hang"), "Subject", "resume did not end"),
        (Observed(how="raised", error="E: x", step="second"), "Store", "load(), done again, raised E: x"),
        (Observed(how="raised", error="E: x", step="third"), "Store", "load(), after one more save, raised E: x"),
    ],
)
def test_recovery_is_told_in_a_sentence(observed: Observed, kind: str, words: str) -> None:
    """Each way to end, and each of the recoveries, has words of its own."""
    assert words in finding_text(dataclasses.replace(DUPLICATE, observed=observed), kind)


def test_a_long_list_of_ops_keeps_its_end_and_the_noted_ones() -> None:
    """Of 500 ops the noted one and the last are shown, and the gap is marked."""
    ops = tuple(OpLine(n=n, op="write", text=f"f{n}", note="lost" if n == 40 else None) for n in range(1, 501))
    text = finding_text(dataclasses.replace(CUT, ops=ops))
    assert re.search(r"^ +40  write", text, re.MULTILINE)
    assert re.search(r"^ +500  write", text, re.MULTILINE)
    assert re.search(r"^ +…$", text, re.MULTILINE)
    assert len(text.splitlines()) < 50


def test_a_full_directory_is_cut_short_and_says_so() -> None:
    """Ten files are shown of thirty, the rest is counted."""
    disk = tuple(DiskLine(path=f"f{n}", type="file", bytes=1) for n in range(30))
    text = finding_text(dataclasses.replace(CUT, disk=disk))
    assert "… 20 more, all under look" in text
    assert "1 byte" in text


# --- the matrix and the comparison -----------------------------------------------------------------


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
    assert table[0].split() == ["subject", "verdict", "states", "cuts", "time", "findings"]
    assert table[1].split() == ["agent", "PASS", "31", "5", "1.1", "s", "none"]
    assert table[2].endswith("1 lost, 1 duplicate-effect")
    assert table[3].endswith("unmeasured: unseen-writer")
    for each in ALL:
        assert text_of(each) in text


def test_one_report_needs_no_comparison() -> None:
    """A single subject looks the same from either function."""
    assert render_many([PASS], color=False) == text_of(PASS)


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
    assert max(cell_len(line) for line in text.splitlines()) <= width


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
