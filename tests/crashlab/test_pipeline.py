"""The whole pipeline: what a user meets, good and bad."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
import tempfile
from typing import TYPE_CHECKING, Any

import pytest

from crashlab import Budget, Policy, Unmeasured, UsageError, Violation, check, explore
from crashlab.replay import replay
from crashlab.report.folder import RunFolder
from crashlab.report.model import CONTROLS, Report
from tests.crashlab import subjects
from tests.crashlab.here import needs_strace

if TYPE_CHECKING:
    from pathlib import Path

NO_KILLS = Budget(real_kills=0)
EVERY = "ext4,xfs,btrfs,posix"


@pytest.fixture(scope="module")
def store_report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    """One clean check, looked at by several tests."""
    return explore(subjects.DURABLE, out=tmp_path_factory.mktemp("out"))


def codes(report: Report) -> set[str]:
    """The unmeasured codes of a report."""
    return {reason.code for reason in report.unmeasured}


def test_a_correct_store_is_consistent_with_every_control(store_report: Report) -> None:
    """Temporary file, rename and two barriers survive kills and power losses; the lab proves itself on the way."""
    assert store_report.verdict == "consistent", str(store_report)
    assert {control.control for control in store_report.controls} == set(CONTROLS) - {"real-disk", "undamaged-twin"}
    assert all(control.passed for control in store_report.controls)


def test_every_distinct_state_is_judged_once(store_report: Report) -> None:
    """The counts add up, and writes were cut at page boundaries."""
    kill, power = store_report.faults
    assert kill.points == store_report.trace.ops + 1
    assert kill.states == kill.points + 5 - 1  # the 20 KB value is cut at 4 pages: 4096, 8192, 12288, 16384
    assert kill.inside >= 4
    assert 0 < power.known < power.distinct < power.reached
    assert (power.inside, power.reached + power.skipped) == (0, power.states)
    for fault in (kill, power):
        assert fault.judged == fault.distinct == fault.consistent < fault.states


def test_the_ids_of_two_checks_are_the_same(store_report: Report, tmp_path: Path) -> None:
    """Ids are recipes: a second check of a deterministic store gives the same trace digest."""
    again = explore(subjects.DURABLE, faults="kill", out=tmp_path, budget=NO_KILLS)
    assert again.trace == store_report.trace


def test_check_raises_with_the_whole_report(tmp_path: Path) -> None:
    """The first line says everything; kind and report are on the error."""
    with pytest.raises(Violation) as raised:
        check(subjects.CHECKED_BAD, faults="kill", out=tmp_path)
    assert raised.value.kind == "guard-bypassed"
    assert raised.value.report is not None
    assert str(raised.value).splitlines()[0].startswith("VIOLATION guard-bypassed: ended with resumed oddly [kill@")


def test_a_save_without_fsync_survives_kills_and_is_lost_with_the_power(tmp_path: Path) -> None:
    """The finding names the ops that never reached the disk, the profiles that allow it, and what mends it."""
    with pytest.raises(Violation) as raised:
        check(subjects.SMALL, profile=EVERY, out=tmp_path, budget=NO_KILLS)
    report = raised.value.report
    assert report is not None
    kill, power = report.faults
    assert (raised.value.kind, kill.violation) == ("lost", 0)
    assert power.violation > 0
    assert report.settings.profile == ("ext4", "xfs", "btrfs", "posix")
    for finding in report.findings:
        assert (finding.fault, finding.fault_line) == ("power", "power loss")
        assert "posix" in finding.profiles
        assert any(line.note == "lost" and line.remark for line in finding.ops)
        assert finding.advice[0].startswith("fsync v.tmp between ops 3 and 4, and its directory between ops 4 and 5")
    assert {row.power for row in report.matrix} == {"violation"}


def test_both_barriers_hold_on_the_weakest_file_system(tmp_path: Path) -> None:
    """The correct twin, under every profile."""
    report = explore(subjects.DURABLE_SMALL, faults="power", profile=EVERY, out=tmp_path, budget=NO_KILLS)
    assert report.verdict == "consistent", str(report)
    assert report.faults[0].judged > 10


def test_check_returns_the_report_of_a_pass(tmp_path: Path) -> None:
    """A pass gives the report back."""
    assert check(subjects.CHECKED, faults="kill", out=tmp_path).verdict == "consistent"


def test_unmeasured_is_never_a_pass(tmp_path: Path) -> None:
    """check raises Unmeasured, whose text ends with that sentence."""
    with pytest.raises(Unmeasured, match=r"This is not a pass\."):
        check(subjects.EMPTY_TRACE, out=tmp_path)


@pytest.mark.parametrize(
    ("name", "code", "words"),
    [
        ("EMPTY_TRACE", "empty-trace", "nothing was written under lab.dir"),
        ("NEVER_ENDS", "time-limit", "did not end in 0.6 s"),
        ("DIFFERS", "runs-differ", "run_id"),
        ("UNSEEN", "unseen-writer", "child.txt"),
        ("UNSEEN_PASSING", "unseen-writer", "passing.txt"),
        ("FORGETS_TUPLES", "round-trip", "without any crash"),
    ],
)
def test_what_cannot_be_judged_says_why(name: str, code: str, words: str, tmp_path: Path) -> None:
    """Each reason has its code, names what was seen and what to do next."""
    report = explore(getattr(subjects, name), out=tmp_path, budget=NO_KILLS, recorder="python")
    assert report.verdict == "unmeasured", str(report)
    assert code in codes(report)
    reason = next(reason for reason in report.unmeasured if reason.code == code)
    assert words in reason.detail
    assert reason.next


def test_a_write_outside_is_reported_and_not_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The path is named; listed under outside it does not matter."""
    monkeypatch.setenv("WRITE_OUTSIDE", str(tmp_path / "outside.txt"))
    report = explore(subjects.OUTSIDE, out=tmp_path, budget=NO_KILLS)
    assert codes(report) == {"outside-write"}
    assert "outside.txt" in report.unmeasured[0].detail


def test_a_view_makes_runs_agree(tmp_path: Path) -> None:
    """Ids and times are dropped by the view, the rest is compared."""
    assert explore(subjects.DIFFERS_VIEWED, faults="kill", out=tmp_path).verdict == "consistent"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("RAISES", "the uncrashed run raised ValueError: I do not like two, on call 2 of save, before any crash"),
        ("SWAPPED", "save is called as save(dir, value)"),
        ("NO_JSON", "the end is an object, which has no JSON form. Pass view="),
        ("CHECK_FAILS", "check failed without any crash: check returned False"),
        ("CHECK_ODD", "check must raise, or return None or True; it returned 'fine'"),
        ("READS_ANSWERS", "lab.expected is for check only"),
        ("ENDLESS_UNCHECKED", "pass check=… as well"),
        ("ODD_KIND", "did you mean 'duplicate-effect'?"),
    ],
)
def test_a_subject_that_fails_without_a_crash_is_misuse(name: str, words: str, tmp_path: Path) -> None:
    """Nothing is judged, and the message says what to write instead."""
    with pytest.raises(UsageError) as raised:
        explore(getattr(subjects, name), out=tmp_path)
    assert words in str(raised.value)


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("no_such_module:subject", "no_such_module"),
        ("tests.crashlab.subjects:STOER", "STORE"),
        ("tests.crashlab.subjects:NOT_A_SUBJECT", "dict"),
        ("tests.crashlab.subjects", ":"),
    ],
)
def test_a_subject_that_cannot_be_imported_is_misuse(path: str, words: str, tmp_path: Path) -> None:
    """The error names what was looked for and what is there."""
    with pytest.raises(UsageError) as raised:
        explore(path, out=tmp_path)
    assert words in str(raised.value)


def test_an_output_folder_that_cannot_be_made_is_misuse(tmp_path: Path) -> None:
    """A file where the folder should be: said before anything is lost."""
    (tmp_path / "taken").write_text("mine")
    with pytest.raises(UsageError, match="taken"):
        explore(subjects.SMALL, out=tmp_path / "taken", budget=NO_KILLS)
    assert (tmp_path / "taken").read_text() == "mine"


@pytest.mark.parametrize("name", ["ASYNC", "CLASS", "EVERYWHERE", "KEYED_LOG", "SERVICE"])
def test_shapes_of_subjects_work(name: str, tmp_path: Path) -> None:
    """Coroutines, classes with handles, HOME and TMPDIR, keyed logs and programs without end."""
    report = explore(getattr(subjects, name), faults="kill", out=tmp_path)
    assert report.verdict == "consistent", str(report)
    assert report.faults[0].judged > 3


def test_a_program_without_end_that_forgets_is_found(tmp_path: Path) -> None:
    """Its check sees what was acked before the crash."""
    report = explore(subjects.FORGETFUL_SERVICE, faults="kill", out=tmp_path)
    assert {finding.kind for finding in report.findings} == {"diverged"}


def test_hostile_content_is_shown_harmless(tmp_path: Path) -> None:
    """Control characters, markup and broken encodings of names and values never reach the terminal raw."""
    report = explore(subjects.HOSTILE, out=tmp_path)
    text = str(report)
    assert report.verdict == "violation"
    assert "\x1b" not in text
    assert "[bold]red" in text
    text.encode("utf-8")


def test_only_judges_one_state(tmp_path: Path) -> None:
    """The id of a state is enough to judge it alone."""
    report = explore(subjects.CHECKED_BAD, out=tmp_path, only="kill@4")
    assert report.faults[0].judged == 1
    with pytest.raises(UsageError, match="no op 999"):
        explore(subjects.CHECKED_BAD, out=tmp_path, only="kill@999")


def test_only_judges_one_power_loss(tmp_path: Path) -> None:
    """Of the faults asked for, the one that the id names; what no profile leaves is refused, with the reason."""
    report = explore(subjects.SMALL, out=tmp_path, only="power@9-8d0")
    [fault] = report.faults
    assert (fault.fault, fault.judged, fault.violation) == ("power", 1, 1)
    assert [finding.id for finding in report.findings] == ["power@9-8d0"]
    with pytest.raises(UsageError, match="belongs to none of the faults asked for"):
        explore(subjects.SMALL, faults="kill", out=tmp_path, only="power@9-8d0")
    with pytest.raises(UsageError, match="something that it loses was forced"):
        explore(subjects.DURABLE_SMALL, out=tmp_path, only="power@7-3..")


def test_a_bound_that_is_not_reached_is_unmeasured(tmp_path: Path) -> None:
    """States used up: what was reached is said."""
    report = explore(subjects.SMALL, faults="kill", out=tmp_path, budget=Budget(states=3, real_kills=0))
    assert codes(report) == {"bound"}
    assert report.faults[0].judged == 3
    assert explore(subjects.SMALL, out=tmp_path, budget=Budget(time_s=0.0, real_kills=0)).verdict == "unmeasured"


def test_a_policy_changes_what_is_demanded(tmp_path: Path) -> None:
    """Refusing is allowed where the policy says so."""
    report = explore(subjects.CHECKED_BAD, out=tmp_path, policy={"kill": Policy(effects="at-most-once")})
    assert report.verdict == "violation"


def test_cut_at_every_byte(tmp_path: Path) -> None:
    """The option cut=byte adds states inside small writes."""
    page = explore(subjects.SMALL, faults="kill", out=tmp_path, budget=NO_KILLS)
    byte = explore(subjects.SMALL, out=tmp_path, budget=NO_KILLS, faults="kill[cut=byte]")
    assert byte.verdict == page.verdict == "consistent"
    assert byte.faults[0].inside > page.faults[0].inside == 0


def test_progress_is_told(tmp_path: Path) -> None:
    """Phases come in order, each up to its total."""
    told: list[tuple[str, int, int]] = []
    explore(subjects.SMALL, out=tmp_path, progress=lambda *each: told.append(each))
    phases = list(dict.fromkeys(phase for phase, _, _ in told))
    assert phases == ["record", "kill", "power", "real kills", "barriers"]
    assert all(done <= total for _, done, total in told)


def test_replay_meets_the_stored_state_again(tmp_path: Path) -> None:
    """The violation is still there; the files of the state can be taken out to look at."""
    report = explore(subjects.CHECKED_BAD, faults="kill", out=tmp_path)
    state_id = report.findings[0].id
    again = replay(RunFolder.open(None, tmp_path), state_id, into=tmp_path / "look")
    assert (again.verdict, [finding.kind for finding in again.findings]) == ("violation", ["guard-bypassed"])
    assert again.findings[0].digest == report.findings[0].digest
    assert (tmp_path / "look" / "dir").is_dir()
    with pytest.raises(UsageError, match="not empty"):
        replay(RunFolder.open(None, tmp_path), state_id, into=tmp_path / "look")


def test_a_replayed_power_loss_is_the_same_finding(tmp_path: Path) -> None:
    """Ops, files, reason and profiles come out as they were told; only what concerns all states is left out."""
    report = explore(subjects.SMALL, faults="power", profile=EVERY, out=tmp_path, budget=NO_KILLS)
    assert len(report.findings) > 1
    whole = {"advice": (), "same": (), "same_count": 0, "replay": "", "directory": ""}
    for finding in report.findings:
        again = replay(RunFolder.open(None, tmp_path), finding.id)
        [met] = again.findings
        assert dataclasses.replace(met, **whole) == dataclasses.replace(finding, **whole)
        assert again.settings.faults == ("power",)


def test_replay_of_a_clean_state_is_consistent(tmp_path: Path) -> None:
    """A state that passed passes again."""
    explore(subjects.SMALL, out=tmp_path, budget=NO_KILLS)
    assert replay(RunFolder.open(None, tmp_path), "kill@3").verdict == "consistent"


def test_a_check_from_a_script_needs_no_import_path(tmp_path: Path) -> None:
    """Functions of __main__, lambdas and closures travel by value."""
    script = tmp_path / "script.py"
    script.write_text(
        "import json\n"
        "from crashlab import Store, explore\n"
        "name = 'state.json'\n"
        "def save(dir, value):\n"
        "    (dir / 'x').write_text(json.dumps(value)); (dir / 'x').rename(dir / name)\n"
        "load = lambda dir: json.loads((dir / name).read_text()) if (dir / name).exists() else None\n"
        "print(json.dumps(explore(Store(save, load), faults='kill', out='out').to_json()))\n"
    )
    ran = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, text=True, check=True)
    form: dict[str, Any] = json.loads(ran.stdout)
    assert form["verdict"] == "consistent"


def test_a_child_that_writes_nothing_is_told_and_no_fault(tmp_path: Path) -> None:
    """The report says what the recorder inside of Python cannot see."""
    report = explore(subjects.QUIET_CHILD, faults="kill", out=tmp_path, recorder="python")
    assert report.verdict == "consistent", str(report)
    assert any("a child process was started: true" in note for note in report.notes)


@needs_strace
@pytest.mark.parametrize("name", ["UNSEEN", "UNSEEN_PASSING", "QUIET_CHILD"])
def test_what_python_cannot_see_is_recorded_from_outside(name: str, tmp_path: Path) -> None:
    """Of its own accord, and the report says why."""
    report = explore(getattr(subjects, name), faults="kill", out=tmp_path)
    assert (report.verdict, report.settings.recorder) == ("consistent", "strace"), str(report)
    assert report.notes[0].startswith("recorded under strace")
    assert [control.passed for control in report.controls if control.control == "replay-proof"] == [True]


def test_acks_that_nobody_checks_are_told(tmp_path: Path) -> None:
    """Without check only the end is compared, and the report says so."""
    report = explore(subjects.replace_check(), out=tmp_path, budget=NO_KILLS)
    assert any("1 acks were told and not checked" in note for note in report.notes)


def test_a_check_that_breaks_is_no_verdict(tmp_path: Path) -> None:
    """An error of the check's own is unmeasured, not blamed on the subject."""
    report = explore(subjects.BREAKING_CHECK, out=tmp_path, budget=NO_KILLS)
    assert report.verdict == "unmeasured", str(report)
    assert "KeyError" in next(reason.detail for reason in report.unmeasured if reason.code == "checker-failed")


def test_a_cut_that_no_kill_makes_is_refused(tmp_path: Path) -> None:
    """Rule K: a write is cut at page ends; the option for bytes is named."""
    with pytest.raises(UsageError, match=r"kill\[cut=byte\]"):
        explore(subjects.SMALL, out=tmp_path, budget=NO_KILLS, only="kill@3+3")


def test_the_replay_line_finds_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It names the run: after a check of another subject the same id would mean another state."""
    monkeypatch.chdir(tmp_path)
    report = explore(subjects.CHECKED_BAD, budget=NO_KILLS)
    explore(subjects.CHECKED, budget=NO_KILLS)
    words = report.findings[0].replay.split()
    assert words == ["crashlab", "replay", report.findings[0].id, "--run", report.run]
    ran = subprocess.run([sys.executable, "-m", *words], capture_output=True, text=True, check=False)
    assert ran.returncode == 1, ran.stdout + ran.stderr


def test_a_run_that_comes_to_nothing_leaves_no_folder(tmp_path: Path) -> None:
    """Misuse found while recording: nothing is kept."""
    with pytest.raises(UsageError):
        explore(subjects.RAISES, out=tmp_path)
    assert os.listdir(tmp_path / "runs") == []


def test_nothing_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No temporary folder outlives a check, nor is any file left in the folder for temporary files."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    explore(subjects.SMALL, out=tmp_path / "out", budget=NO_KILLS)
    assert os.listdir(tmp_path / "temporary") == []
