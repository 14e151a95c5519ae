"""Reads that fail in a recovery: what a kill alone breaks is not laid at their door."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crashlab import Budget, Policy, Subject, explore
from crashlab.error_reads import ReadTrial
from tests.quality import failing_stores

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from crashlab import Lab
    from crashlab.report.model import Report

FEW = Budget(real_kills=0)
TWICE_IS_FINE = {"kill": Policy(effects="at-least-once")}


def pay(lab: Lab) -> int:
    """Pays before it notes that, so a kill between the two pays again; an unread file stops it aloud."""
    done = int((failing_stores.load_right(lab.dir) or {"n": 0})["n"])
    for number in range(done, 3):
        lab.effect("pay", number=number)
        failing_stores.save_right(lab.dir, {"n": number + 1})
    return 3


def checked(out: Path) -> Report:
    """Kills may pay again; nothing was said of errors."""
    return explore(Subject(pay), faults="kill,error:EIO-read", policy=TWICE_IS_FINE, budget=FEW, out=out)


def test_what_a_kill_alone_doubles_is_no_fault_of_a_read(tmp_path: Path) -> None:
    """The program raises at each failed read, and pays again only where it would have after the kill by itself."""
    report = checked(tmp_path)
    assert report.verdict == "consistent", str(report)
    assert any("when it is just killed" in note for note in report.notes)


def test_without_that_look_it_would_be_accused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sabotage: the test above turns red where every moment is taken."""
    monkeypatch.setattr(ReadTrial, "_fails_anyway", lambda *_: False)
    assert [finding.kind for finding in checked(tmp_path).findings] == ["duplicate-effect"]


def test_a_read_that_fails_at_the_end_still_accuses(tmp_path: Path) -> None:
    """There nothing is wrong without it."""
    report = explore(failing_stores.PAYS_UNREAD, faults="error:EIO-read", budget=FEW, out=tmp_path)
    finding = report.findings[0]
    assert (finding.kind, finding.id.partition(":")[0]) == ("duplicate-effect", "error@r1")
    assert "could not read what is there" in finding.why


def test_reads_beyond_the_budget_are_no_pass(tmp_path: Path) -> None:
    """A recovery that reads much is much work: where no time is left for it, the report says so."""
    out_of_time = Budget(real_kills=0, time_s=0.0)
    report = explore(Subject(pay), faults="error:EIO-read", budget=out_of_time, out=tmp_path)
    assert (report.verdict, report.faults[0].judged) == ("unmeasured", 0), str(report)
    (reason,) = report.unmeasured
    assert reason.code == "bound"
    assert "is used up after 0 of " in reason.detail


def test_how_many_reads_are_left_is_told(tmp_path: Path) -> None:
    """To the last of them."""
    told: list[tuple[int, int]] = []

    def progress(phase: str, done: int, total: int) -> None:
        if phase == "error":
            told.append((done, total))

    report = explore(Subject(pay), faults="error:EIO-read", budget=FEW, out=tmp_path, progress=progress)
    assert told == [(number, len(told)) for number in range(1, report.faults[0].points + 1)]
