"""Accepted findings: they pass, new and graver ones fail, entries out of date are told, files stay whole."""

from __future__ import annotations

import dataclasses
import fcntl
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import jsonschema
import pytest

from crashlab import Budget, explore
from crashlab.baseline import FILE, Baseline, Entry, call_site
from crashlab.errors import UsageError
from crashlab.project import read as read_project
from crashlab.report.load import load
from crashlab.report.model import FaultCount, Finding, OpLine, Report
from crashlab.report.text import render
from crashlab.toml_file import quoted
from tests.crashlab.report.samples import PASS, UNMEASURED
from tests.crashlab.report.test_load import SCHEMA
from tests.crashlab.test_commands import SUBJECTS, crashlab_command

if TYPE_CHECKING:
    from collections.abc import Sequence

REASON = 'until May, "see" the plan'


def finding(
    kind: str = "lost", *, fault: str = "kill", place: str = "save1.data@4096", state: str = "kill@7"
) -> Finding:
    """A finding without ops."""
    return Finding(id=state, verdict="violation", kind=kind, fault=fault, summary="gone", place=place)


def report(*findings: Finding, faults: Sequence[str] = ("kill",)) -> Report:
    """A report of a subject called store."""
    counts = tuple(FaultCount(fault=fault, states=9, judged=9) for fault in faults)
    subject = dataclasses.replace(PASS.subject, name="store")
    verdict = "violation" if findings else "consistent"
    return dataclasses.replace(PASS, subject=subject, verdict=verdict, findings=findings, faults=counts, notes=())


def accepting(*findings: Finding, file: Path = Path(FILE), subject: str = "store") -> Baseline:
    """A baseline with an entry for each of these."""
    return Baseline(file=file, entries=tuple(Entry.of(each, subject, REASON) for each in findings))


def test_an_accepted_finding_passes_and_is_shown() -> None:
    """The verdict says so; the finding and its reason are in the text and in the JSON."""
    result = accepting(finding()).applied(report(finding()), whole=True)
    assert (result.verdict, result.findings, result.notes) == ("consistent", (), ())
    text = render(result, color=False)
    assert text.startswith("PASS with 1 accepted finding  store: otherwise consistent within the stated bound\n")
    assert f"\n  accepted   lost at save1.data@4096 [kill@7]: {REASON}\n" in text
    assert "forgot nothing" not in text
    form = json.loads(json.dumps(result.to_json()))
    jsonschema.Draft202012Validator(SCHEMA).validate(form)
    assert load(form) == result
    del form["accepted"]  # as an earlier version wrote it
    assert load(form).accepted == ()


@pytest.mark.parametrize(
    "other",
    [
        finding("torn"),
        finding("lost", fault="power", state="power@7-3"),
        finding("lost", place="save2.data@4096"),
    ],
    ids=["a graver kind", "another fault", "another place"],
)
def test_another_finding_is_new(other: Finding) -> None:
    """An entry accepts one finding and nothing beside it."""
    result = accepting(finding()).applied(report(other, finding()), whole=True)
    assert result.verdict == "violation"
    assert [each.kind for each in result.findings] == [other.kind]
    assert len(result.accepted) == 1
    assert f"accepted   lost at save1.data@4096 [kill@7]: {REASON}" in render(result, color=False)


def test_an_entry_of_another_subject_accepts_nothing() -> None:
    """And it is not out of date either, since that subject was not checked."""
    result = accepting(finding(), subject="other").applied(report(finding()), whole=True)
    assert (result.verdict, result.accepted, result.notes) == ("violation", (), ())


def test_ids_offsets_and_lines_may_move() -> None:
    """They change whenever the code above does."""
    moved = finding(place="save1.data@8192", state="kill@9+8192")
    assert accepting(finding()).applied(report(moved), whole=True).verdict == "consistent"


def test_an_entry_that_nothing_meets_is_told() -> None:
    """Only where its fault was tried, on all states, and everything could be judged."""
    baseline = accepting(finding())
    (note,) = baseline.applied(report(), whole=True).notes
    assert note.startswith("out of date? No finding of this check is lost by kill at save1.data@. ")
    assert note.endswith("crashlab-baseline.toml.")
    assert "with the same faults, profiles and budget, finds none either, remove" in note, "this one may ask for less"
    assert baseline.applied(report(faults=["power"]), whole=True).notes == ()
    assert baseline.applied(report(), whole=False).notes == ()


def test_what_could_not_be_judged_stays_so() -> None:
    """Accepted findings never turn an unmeasured result into a pass, and a doubtful recording accepts nothing."""
    both = dataclasses.replace(report(finding()), unmeasured=UNMEASURED.unmeasured)
    assert accepting(finding()).applied(both, whole=True).verdict == "unmeasured"
    doubtful = dataclasses.replace(both, verdict="unmeasured")
    assert accepting(finding()).applied(doubtful, whole=True) == doubtful
    assert Baseline(file=Path(FILE), accept=REASON).applied(doubtful, whole=True).accepted == ()


def test_no_state_is_left_out_because_of_an_accepted_one() -> None:
    """Behind it could be a graver one."""
    budget = Budget(violations=2, states=700)
    assert accepting(finding()).budget(budget, "store").violations == 700
    assert accepting(finding()).budget(budget, "other") == budget
    assert Baseline(file=Path(FILE), accept=REASON).budget(budget, "other").violations == 700


CODE = """
class Store:
    def save(self, value):
        def inner():
            return 1
        return inner()


async def outside():
    return 2
value = 3
"""


@pytest.mark.parametrize(
    ("line", "name"),
    [(3, "Store.save"), (5, "Store.save.inner"), (6, "Store.save"), (10, "outside"), (11, "")],
)
def test_a_call_site_is_a_file_and_a_function(
    line: int, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The innermost one, by its whole name; a line of the module is the file alone."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / f"code{line}.py").write_text(CODE)
    at = f"code{line}.py:{line}"
    ops = (OpLine(n=1, op="write", text="", at=at), OpLine(n=2, op="ack", text=""))
    assert call_site(dataclasses.replace(finding(), ops=ops)) == f"code{line}.py:{name}".rstrip(":")


def test_a_call_site_without_a_source_is_the_file() -> None:
    """And that of a program which is watched from outside is nothing."""
    lost = OpLine(n=1, op="write", text="", at="absent.py:7", note="lost")
    later = OpLine(n=2, op="rename", text="", at="other.py:8")
    assert call_site(dataclasses.replace(finding(), ops=(lost, later))) == "absent.py"
    assert call_site(finding()) == ""


# --- the file --------------------------------------------------------------------------------------


def test_what_is_written_is_read_and_the_rest_stays(tmp_path: Path) -> None:
    """Comments and entries of others stay; what is there already is not written twice."""
    file = tmp_path / FILE
    Baseline(file=file, accept=REASON).keep(Baseline(file=file, accept=REASON).applied(report(finding()), whole=True))
    file.write_text(file.read_text() + "\n# ours\n")
    before = file.read_text()
    again = Baseline.read(file, accept="another reason")
    result = again.applied(report(finding("torn"), finding()), whole=True)
    assert [each.reason for each in result.accepted] == ["another reason", REASON]
    assert again.keep(result) == 1
    assert file.read_text().startswith(before.rstrip("\n"))
    assert [(each.kind, each.reason) for each in Baseline.read(file).entries] == [
        ("lost", REASON),
        ("torn", "another reason"),
    ]
    assert Baseline.read(file).applied(report(finding("torn"), finding()), whole=True).verdict == "consistent"
    assert [path.name for path in tmp_path.iterdir()] == [FILE]


@pytest.mark.parametrize("text", ['"\\', "line\nbreak", "\x00\x7f\x1b", "é\u2028😀", "a\tb"])
def test_any_text_comes_back(text: str, tmp_path: Path) -> None:
    """Names and reasons are anything."""
    file = tmp_path / FILE
    file.write_text(f"[subject.a]\nobject = 'm:a'\nname = {quoted(text)}\n", encoding="utf-8")
    assert read_project(file).subjects["a"].fields == {"name": text}


def test_a_killed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Up to the rename the old entries are there whole."""
    file = tmp_path / FILE
    baseline = Baseline(file=file, accept=REASON)
    baseline.keep(baseline.applied(report(finding()), whole=True))
    before = file.read_text()

    class Killed(BaseException):
        pass

    def die(*_: object) -> None:
        raise Killed

    monkeypatch.setattr(os, "replace", die)
    again = Baseline.read(file, accept=REASON)
    with pytest.raises(Killed):
        again.keep(again.applied(report(finding("torn")), whole=True))
    assert file.read_text() == before


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[[acepted]]", "crashlab-baseline.toml: acepted: unknown; did you mean 'accepted'?"),
        ("[[accepted]]\nsubjet = 'a'", "accepted[1].subjet: unknown; did you mean 'subject'?"),
        ("accepted = 1", "accepted is no list of tables; write each entry under [[accepted]]"),
        (
            "[[accepted]]\nsubject='a'\nfault='kill'\nkind='lost'\nat=''\nplace=''\nreason=' '",
            "accepted[1].reason is ' '; expected text: say why this is accepted",
        ),
        ("[[accepted]]\nsubject='a'", "accepted[1].fault is None; expected text, as crashlab check --accept writes it"),
        (
            "[[accepted]]\nsubject='a'\nfault='kil'\nkind='lost'\nat=''\nplace=''\nreason='r'",
            "accepted[1].fault is 'kil'; expected one of kill, power,",
        ),
        ("[[accepted]", "crashlab-baseline.toml:1:11: "),
    ],
)
def test_a_file_that_means_nothing_is_refused(
    text: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It must not accept by accident."""
    monkeypatch.chdir(tmp_path)
    Path(FILE).write_text(text)
    with pytest.raises(UsageError) as raised:
        explore("shop:naive")
    assert words in str(raised.value)


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    """The projects of one repository may share a file; one that is not there yet is made where the link leads."""
    (tmp_path / "shared").mkdir()
    file = tmp_path / FILE
    file.symlink_to(Path("shared", FILE))
    for number, kind in enumerate(("lost", "torn"), start=1):
        baseline = Baseline.read(file, accept=REASON)
        baseline.keep(baseline.applied(report(finding(kind)), whole=True))
        assert file.is_symlink()
        assert (tmp_path / "shared" / FILE).read_text().count("[[accepted]]") == number
    assert os.listdir(tmp_path / "shared") == [FILE]


def test_a_missing_file_or_reason_is_refused(tmp_path: Path) -> None:
    """By name it must be there; an empty reason helps nobody."""
    with pytest.raises(UsageError, match=r"cannot read .*none\.toml: No such file"):
        Baseline.read(tmp_path / "none.toml")
    with pytest.raises(UsageError, match="takes a reason that others understand"):
        Baseline.read(tmp_path / "none.toml", accept=" ")
    missing = Baseline(file=tmp_path / "no" / FILE, accept=REASON)
    result = missing.applied(report(finding()), whole=True)
    with pytest.raises(UsageError, match=r"cannot write .*; name another file: --baseline FILE"):
        missing.keep(result)


def test_accepting_on_the_command_line(tmp_path: Path) -> None:
    """Accepted once, the same check passes; after the code moved too; a new fault of the code is found."""
    (tmp_path / "shop.py").write_text(SUBJECTS)
    (tmp_path / "crashlab.toml").write_text('[subject.naive]\nobject = "shop:naive"\nfaults = "kill"\n')
    done = crashlab_command("check", "naive", "--accept", REASON, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("PASS with ")
    entries = Baseline.read(tmp_path / FILE).entries
    assert {(each.subject, each.fault, each.at) for each in entries} == {("naive", "kill", "shop.py:save_in_place")}
    (tmp_path / "shop.py").write_text(f'"""Moved."""\n\n{SUBJECTS}')
    again = crashlab_command("check", cwd=tmp_path)
    assert again.returncode == 0, again.stdout
    assert "out of date" not in again.stdout
    shown = crashlab_command("show", cwd=tmp_path)
    assert shown.stdout == again.stdout
    (tmp_path / "shop.py").write_text(SUBJECTS.replace("write_text(json.dumps(value))", 'write_text(str(value) + "}")'))
    worse = crashlab_command("check", cwd=tmp_path)
    assert worse.returncode in (1, 2), worse.stdout
    (tmp_path / "shop.py").write_text(SUBJECTS.replace("save_in_place, load", "save, load"))
    mended = crashlab_command("check", cwd=tmp_path)
    assert mended.returncode == 0, mended.stdout
    assert mended.stdout.startswith("PASS  naive: ")
    assert "out of date? No finding of this check is " in mended.stdout


def test_nobody_else_may_write_between_reading_and_writing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the entries of another process would go with the old file. The lock is there at both ends."""
    free: list[bool] = []
    read, replace = Baseline.read, os.replace

    def look() -> bool:
        descriptor = os.open(tmp_path, os.O_RDONLY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            free.append(True)
        except BlockingIOError:
            free.append(False)
        finally:
            os.close(descriptor)
        return free[-1]

    file = tmp_path / FILE
    baseline = Baseline(file=file, accept=REASON)
    baseline.keep(baseline.applied(report(finding()), whole=True))
    monkeypatch.setattr(Baseline, "read", lambda path: (look(), read(path))[1])
    monkeypatch.setattr(os, "replace", lambda old, new: (look(), replace(old, new))[1])
    baseline.keep(baseline.applied(report(finding("torn")), whole=True))
    look()
    assert free == [False, False, True]


def test_two_processes_that_accept_at_once_lose_nothing(tmp_path: Path) -> None:
    """Workers of one test run, each with what it read before the other wrote."""
    one, other = (Baseline(file=tmp_path / FILE, accept=REASON) for _ in range(2))
    one.keep(one.applied(report(finding("torn")), whole=True))
    other.keep(other.applied(report(finding("lost"), finding("torn")), whole=True))
    assert sorted(each.kind for each in Baseline.read(tmp_path / FILE).entries) == ["lost", "torn"]
