"""One round over all states of a fault: how often a subject is resumed, and in which processes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crashlab import Budget, explore
from crashlab.demands import Reference
from crashlab.rounds import request
from tests.crashlab.traces import trace_of
from tests.quality import programs

if TYPE_CHECKING:
    from pathlib import Path

NO_KILLS = Budget(real_kills=0)


def steps(kind: str, *, together: bool) -> list[str]:
    """The steps that a worker is asked for."""
    asked = request("kill@1", Reference(kind=kind, trace=trace_of()), timeout_s=1.0, together=together)
    return [step["step"] + ("+again" if step.get("again") else "") for step in asked["steps"]]


def test_a_store_always_gets_processes_of_its_own() -> None:
    """Recover, recover and save, find: three processes, whatever is asked."""
    assert steps("Store", together=True) == steps("Log", together=False) == ["first", "second", "third"]


def test_a_subject_resumes_twice_in_one_process_where_that_is_allowed() -> None:
    """One process instead of two."""
    assert steps("Subject", together=True) == ["first+again"]
    assert steps("Subject", together=False) == ["first", "second"]


def test_what_a_process_remembers_is_found_out(tmp_path: Path) -> None:
    """A resume that lives from memory passes in one process; every sixteenth state in two finds it, then all are."""
    report = explore(programs.REMEMBERS, out=tmp_path, budget=NO_KILLS)
    assert {(finding.kind, finding.observed.step, finding.contract) for finding in report.findings} == {
        ("diverged", "second", "RD")
    }
    [fault] = report.faults
    assert fault.violation > fault.distinct * 3 / 4
    assert "something stays in memory" in report.notes[0]


def test_ends_that_were_not_compared_are_told(tmp_path: Path) -> None:
    """After an honest unknown a person must decide; without check nobody says what must hold until then."""
    report = explore(programs.HONEST_UNKNOWN, out=tmp_path, budget=NO_KILLS)
    assert any("the end was not compared" in note for note in report.notes)


def test_a_lock_held_for_life_is_no_alarm_and_is_told(tmp_path: Path) -> None:
    """Resumed twice in one process it collides with itself; in two processes it does not, and the report says so."""
    report = explore(programs.LEASED, out=tmp_path, budget=NO_KILLS)
    assert report.verdict == "consistent", str(report)
    assert "something stays in memory" in report.notes[0]
