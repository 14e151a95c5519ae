"""One finding as a person reads it: every field, every way to end, and long lists cut short."""

from __future__ import annotations

import dataclasses
import re

import pytest

from crashlab.report.model import DiskLine, Effects, Finding, Observed, OpLine, SubjectInfo
from crashlab.report.text import render_finding
from tests.crashlab.report.samples import (
    CUT,
    DUPLICATE,
    finding_text,
)


def test_a_finding_reads_as_the_specification_draws_it() -> None:
    """The whole text of a finding, to the column."""
    assert finding_text(DUPLICATE) == (
        "VIOLATION duplicate-effect: mail to=ada done 2 times, expected 1 [kill@7]\n"
        "\n"
        "  agent   Subject(run)   EO   turn5.tool2.effect+\n"
        "\n"
        "     …\n"
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
    """A field that changes changes the text, but for the bytes that differ: those are for a wider page."""
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
        if each.name == "changes":
            continue
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


@pytest.mark.parametrize(
    ("profiles", "words"),
    [
        (("ext4", "btrfs"), "possible   ext4, btrfs with default options\n"),
        (("ext4[noauto_da_alloc]",), "possible   ext4[noauto_da_alloc]\n"),
        (("ext4", "posix"), "possible   ext4, posix\n"),
    ],
)
def test_default_options_are_said_where_they_are_the_defaults(profiles: tuple[str, ...], words: str) -> None:
    """A profile with options has others, and posix is no file system."""
    assert words in finding_text(dataclasses.replace(DUPLICATE, profiles=profiles))


def test_a_line_break_in_a_name_does_not_break_the_advice() -> None:
    """It is shown as an escape, as everywhere else."""
    text = finding_text(dataclasses.replace(DUPLICATE, advice=("fsync a\nb.tmp between ops 2 and 3.",)))
    assert "fsync a\\nb.tmp between" in text


def test_ops_that_are_left_out_leave_a_mark() -> None:
    """At the beginning, and before a crash line: a list that is cut does not look whole."""
    assert re.search(r"^ +…\n +5  ", finding_text(DUPLICATE), re.MULTILINE)
    first = tuple(OpLine(n=n, op="write", text="a", run=0) for n in range(1, 20))
    second = tuple(OpLine(n=n, op="write", text="b", run=1) for n in range(1, 31))
    text = finding_text(dataclasses.replace(DUPLICATE, ops=first + second, crashes=("killed",)))
    before, _, after = text.partition("---------- killed ----------")
    assert " 1  write" not in before
    assert after.lstrip().startswith("…")


@pytest.mark.parametrize("width", [40, 60])
def test_on_a_narrow_page_what_was_lost_is_still_told(width: int) -> None:
    """The note below its op, the size behind its file."""
    lost = dataclasses.replace(CUT, ops=(OpLine(n=2, op="rename", text="t" * 60, note="lost"),))
    text = render_finding(lost, SubjectInfo(name="agent", kind="Log"), color=False, width=width)
    assert "<-- never reached the disk" in text
    assert "4,096 bytes" in text
