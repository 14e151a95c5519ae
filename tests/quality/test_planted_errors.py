"""Every planted fault in dealing with I/O errors is found, by its kind and its error; correct twins stay clean."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from crashlab import Budget, explore
from crashlab.judge import Judge
from tests.quality import failing_stores as stores

if TYPE_CHECKING:
    from pathlib import Path

    from crashlab import Log, Store, Subject

LONG = Budget(real_kills=1)
FOUND: dict[str, tuple[Store | Log | Subject, str, set[str], str]] = {
    "swallows ENOSPC": (stores.SWALLOWS, "error:ENOSPC", {"lost"}, "Let the OSError out"),
    "swallows EIO": (stores.SWALLOWS, "error:EIO", {"lost"}, "Let the OSError out"),
    "retries fsync": (stores.RETRIES_FSYNC, "error:failed-fsync", {"lost"}, "write the whole value again"),
    "no file for an unread one": (stores.NONE_ON_ERROR, "error:EIO-read", {"silent-reset"}, "FileNotFoundError"),
    "removes what it could not read": (
        stores.REMOVES_UNREAD,
        "error:EIO-read",
        {"silent-reset"},
        "After a read that failed change nothing",
    ),
    "ignores a short write": (stores.IGNORES_SHORT, "error:short-write", {"lost"}, "until every byte"),
    "leaves a temporary file": (stores.LEAVES_TMP, "error:ENOSPC", {"stuck"}, "a name of its own"),
    "empties before it is sure": (stores.IN_PLACE, "error:ENOSPC", {"lost"}, "rename it over the old one"),
    "a glued half line": (stores.GLUED_LOG, "error:short-write", {"lost"}, ""),
    "pays and swallows": (stores.PAYS_AND_SWALLOWS, "error:EIO", {"duplicate-effect"}, "Stop at an error"),
    "pays again unread": (stores.PAYS_UNREAD, "error:EIO-read", {"duplicate-effect"}, ""),
}
"""Per fault: the subject, the error that shows it, the kinds that must be found, a part of the advice."""

CLEAN: dict[str, Store | Log | Subject] = {
    "store": stores.RIGHT,
    "log": stores.RIGHT_LOG,
    "program": stores.PAYS_RIGHT,
}


@pytest.mark.parametrize("name", FOUND)
def test_planted_fault_is_found(name: str, tmp_path: Path) -> None:
    """A subject with one fault is a violation of the stated kind, with advice that names the way out."""
    subject, faults, kinds, advice = FOUND[name]
    report = explore(subject, faults=faults, out=tmp_path)
    assert report.verdict == "violation", str(report)
    assert kinds <= {finding.kind for finding in report.findings}, str(report)
    assert any(advice in " ".join(finding.advice) for finding in report.findings), str(report)
    assert all(finding.fault == "error" and "error@" in finding.id for finding in report.findings)


@pytest.mark.parametrize("name", CLEAN)
def test_correct_twin_is_clean(name: str, tmp_path: Path) -> None:
    """A correct one passes every error at every op, and none is left unmeasured."""
    report = explore(CLEAN[name], faults="error", out=tmp_path)
    assert report.verdict == "consistent", str(report)
    [count] = report.faults
    assert count.judged == count.distinct == count.consistent > 10
    assert count.points > 20


@pytest.mark.parametrize("variant", ["EDQUOT", "EROFS", "EMFILE", "EFBIG", "failed-journal"])
def test_the_other_variants_are_met_too(variant: str, tmp_path: Path) -> None:
    """Each further errno strikes where it can, and a correct store stands it."""
    report = explore(stores.RIGHT, faults=f"error:{variant}", out=tmp_path)
    assert report.verdict == "consistent", str(report)
    assert report.faults[0].points > 0


def test_an_id_is_tried_alone(tmp_path: Path) -> None:
    """The id of a finding runs that error again, and nothing else."""
    report = explore(stores.SWALLOWS, faults="error:ENOSPC", out=tmp_path)
    again = explore(stores.SWALLOWS, faults="error", only=report.findings[0].id, out=tmp_path)
    assert again.verdict == "violation"
    assert again.findings[0].id == report.findings[0].id
    assert again.faults[0].points == 1


def test_a_loss_after_a_failed_barrier_says_what_was_lost_and_where_that_can_be(tmp_path: Path) -> None:
    """The ops of that run whose bytes never reached the disk are noted, and the file systems are named."""
    report = explore(stores.RETRIES_FSYNC, faults="error:failed-fsync", profile="ext4,xfs", out=tmp_path)
    finding = report.findings[0]
    assert "/power@" in finding.id
    assert [line.op for line in finding.ops if line.note == "lost"], str(report)
    assert finding.profiles
    assert set(finding.profiles) <= {"ext4", "xfs"}


def test_a_first_value_that_is_half_there_is_told_as_changed_in_place(tmp_path: Path) -> None:
    """Nothing was acked, and load raises: no leftover stops it, but the file itself."""
    report = explore(stores.IN_PLACE, faults="error:ENOSPC", out=tmp_path)
    (stuck,) = (finding for finding in report.findings if finding.kind == "stuck")
    assert "nothing was acked" in stuck.summary
    assert "changed in place" in stuck.why
    assert stuck.expected[0] == "nothing there"


def test_what_a_call_raised_is_told_without_the_place_of_the_lab(tmp_path: Path) -> None:
    """The root is another one on every run: two reports of one fault must not differ by it."""
    report = explore(stores.LEAVES_TMP, faults="error:ENOSPC", out=tmp_path)
    told = [finding.summary for finding in report.findings if "File exists" in finding.summary]
    assert told
    assert not any("/dir/" in text for text in told), told


# --- sabotage ----------------------------------------------------------------------------------------


def test_an_injector_that_never_fires_is_no_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A gate that lets everything through leaves each error unmeasured, by name."""
    monkeypatch.setenv("PLANT_ERRORS", "never")
    report = explore("tests.quality.planted_error_faults:STORE", faults="error:ENOSPC", out=tmp_path)
    assert report.verdict == "unmeasured", str(report)
    assert "no error struck it" in report.unmeasured[0].detail


def test_reads_that_never_fail_are_no_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor are reads that all go through."""
    monkeypatch.setenv("PLANT_ERRORS", "reads")
    report = explore("tests.quality.planted_error_faults:STORE", faults="error:EIO-read", out=tmp_path)
    assert report.verdict == "unmeasured", str(report)


def test_a_judge_that_never_asks_for_the_second_call_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without what the live run showed, a temporary file that blocks the next save is found nowhere."""
    monkeypatch.setattr("crashlab.error_judge.live_problems", lambda *_: iter(()))
    monkeypatch.setattr("crashlab.error_trial.live_problems", lambda *_: iter(()))
    monkeypatch.setattr(Judge, "_again_problems", lambda *_: iter(()))
    with pytest.raises(AssertionError):
        test_planted_fault_is_found("leaves a temporary file", tmp_path)


def test_a_failed_barrier_that_counts_as_one_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If nothing is given up, calling fsync again is enough, and the planted fault is not found."""
    monkeypatch.setattr("crashlab.crash.moments.DataFloors._give_up", lambda *_: None)
    with pytest.raises(AssertionError):
        test_planted_fault_is_found("retries fsync", tmp_path)


# --- agents ------------------------------------------------------------------------------------------


AGENTS = {
    "naive_swallow_enospc": ("ENOSPC", {"lost", "duplicate-effect"}, "error@203:ENOSPC"),
    "naive_retry_fsync": ("failed-fsync", {"stuck"}, "error@4:failed-fsync/power@9-3"),
    "naive_none_on_error": ("EIO-read", {"duplicate-effect"}, "kill@138/error@r3:EIO-read"),
}
"""Per naive agent: the error that shows it, the kinds that must be found, and the id of one state among them."""


@pytest.mark.parametrize("name", AGENTS)
def test_one_error_shows_a_naive_agent_and_not_the_correct_one(name: str, tmp_path: Path) -> None:
    """At one place of its run, with a kind of those that the whole sweep finds; the correct agent passes there."""
    _, kinds, place = AGENTS[name]
    naive, right = (
        explore(f"longrun.checkpoint.{each}:subject", faults="error", only=place, budget=LONG, out=tmp_path)
        for each in (name, "correct")
    )
    assert {finding.id for finding in naive.findings} == {place}, str(naive)
    assert kinds & {finding.kind for finding in naive.findings}, str(naive)
    assert right.verdict == "consistent", str(right)


@pytest.mark.full  # up to fifteen hundred states each; one of them is in the quick profile
@pytest.mark.parametrize("name", AGENTS)
def test_a_naive_agent_is_found(name: str, tmp_path: Path) -> None:
    """Each is a violation under its error, of the stated kinds."""
    variant, kinds, _ = AGENTS[name]
    report = explore(f"longrun.checkpoint.{name}:subject", faults=f"error:{variant}", budget=LONG, out=tmp_path)
    assert report.verdict == "violation", str(report)
    assert kinds <= {finding.kind for finding in report.findings}, str(report)


@pytest.mark.parametrize("faults", ["error:short-write", pytest.param("error", marks=pytest.mark.full)])
def test_the_correct_agent_stands_every_error_at_every_op(faults: str, tmp_path: Path) -> None:
    """Loud where a save fails, and right after a resume: nothing is violated, nothing unmeasured."""
    report = explore("longrun.checkpoint.correct:subject", faults=faults, budget=LONG, out=tmp_path)
    assert report.verdict == "consistent", str(report)
    assert report.faults[0].judged == report.faults[0].consistent > 100
