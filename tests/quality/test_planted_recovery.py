"""Recoveries that cannot bear to be killed themselves: each found by its kind, its correct twin clean."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from crashlab import Budget, explore
from crashlab.crash.nested import Recovery
from crashlab.crash.states import CrashState
from crashlab.report.folder import RunFolder
from crashlab.trace import Rename
from tests.quality import interrupted

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FAST = Budget(real_kills=2)
PLANTED: dict[str, tuple[Any, Any, str]] = {
    "takes its state away": (interrupted.TAKES_AWAY, interrupted.PUTS_BACK, "diverged"),
    "applies the journal twice": (interrupted.APPLIES_TWICE, interrupted.APPLIES_ONCE, "diverged"),
    "does the effect, then notes it": (interrupted.MAILS_AGAIN, interrupted.MAILS_KEYED, "duplicate-effect"),
    "notes a report before it makes it": (interrupted.NOTES_FIRST, interrupted.REPORTS, "missing-effect"),
    "rewrites the log to mend its tail": (interrupted.REWRITES, interrupted.CUTS_OFF, "silent-reset"),
}
"""Per fault: the program that has it, its correct twin, and the kind by which it must be found."""


@pytest.mark.parametrize("fault", PLANTED)
def test_only_a_second_crash_finds_it(fault: str, tmp_path: Path) -> None:
    """Kills of the run find nothing; a kill of the recovery finds the stated kind, and both crashes are shown."""
    wrong, _, kind = PLANTED[fault]
    report = explore(wrong, faults="kill,recovery", out=tmp_path, budget=FAST)
    kill, recovery = report.faults
    assert (kill.violation, recovery.violation > 0) == (0, True), str(report)
    assert (report.verdict, report.findings[0].kind, report.unmeasured) == ("violation", kind, ()), str(report)
    finding = report.findings[0]
    assert finding.fault == "recovery"
    assert finding.id.count("/") == 1
    assert {line.run for line in finding.ops} >= {1}
    assert finding.crashes[0].startswith("killed")
    assert finding.fault_line.endswith("during recovery")
    assert finding.why
    assert finding.advice


@pytest.mark.parametrize("fault", PLANTED)
def test_the_correct_twin_is_clean(fault: str, tmp_path: Path) -> None:
    """Kills and power losses of run and recovery leave the twin nothing to be accused of."""
    _, right, _ = PLANTED[fault]
    report = explore(right, faults="kill,power,recovery", out=tmp_path, budget=FAST)
    assert report.verdict == "consistent", str(report)
    assert report.faults[-1].points > 0
    assert report.faults[-1].judged > 0


def test_an_honest_unknown_stays_honest_after_a_second_crash(tmp_path: Path) -> None:
    """A recovery that notes that it asks, and is killed, may ask again. How often it asked is told for each fault.

    Of kills it asks from the moment at which the mark has its name until the mail is noted as sent.
    """
    report = explore(interrupted.ASKS, faults="kill,power,recovery", out=tmp_path, budget=FAST)
    assert report.verdict == "consistent", str(report)
    named, sent = (op.n for op in RunFolder.open(None, tmp_path).trace().ops if isinstance(op, Rename))
    unknown = {count.fault: count.unknown for count in report.faults}
    assert unknown["kill"] == sent - named - 2, "the two fsyncs between leave what was there"
    assert 0 < unknown["power"] < report.faults[1].judged
    assert 0 < unknown["recovery"] < report.faults[2].judged


def test_after_an_error_an_honest_unknown_is_counted_too(tmp_path: Path) -> None:
    """A run that fails before it notes the mail leaves one who asks; a run that fails before the mark does not."""
    report = explore(interrupted.ASKS, faults="error:EIO", out=tmp_path, budget=FAST)
    assert report.verdict == "consistent", str(report)
    assert 0 < report.faults[0].unknown < report.faults[0].judged


def test_a_recovery_that_writes_nothing_is_told_and_no_pass_by_absence(tmp_path: Path) -> None:
    """How many chosen recoveries had nothing to crash stands in the notes."""
    report = explore(interrupted.READS, faults="kill,recovery", out=tmp_path, budget=FAST)
    assert report.verdict == "consistent", str(report)
    assert any("wrote nothing in" in note for note in report.notes)


def test_asked_for_alone_it_accuses_the_first_crash_too(tmp_path: Path) -> None:
    """Without the faults outside, what fails at once is found at its own id, and is not crashed again."""
    from tests.quality import programs  # noqa: PLC0415 - for this one test

    report = explore(programs.PAYS_TWICE, faults="recovery", out=tmp_path, budget=FAST)
    assert report.verdict == "violation"
    assert "/" not in report.findings[0].id
    assert any("fail without a second crash" in note for note in report.notes)


def _whole_recoveries(self: Recovery) -> Iterator[CrashState]:
    """Sabotage: the recovery is never killed before its end."""
    yield self._killed(len(self.trace.ops))


def test_without_the_second_crash_the_fault_is_not_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The checker is checked: a lab whose recoveries always end finds nothing."""
    monkeypatch.setattr(Recovery, "kills", _whole_recoveries)
    report = explore(interrupted.TAKES_AWAY, faults="kill,recovery", out=tmp_path, budget=FAST)
    assert report.faults[-1].violation == 0


def test_with_the_first_recovery_s_effects_forgotten_the_doubling_is_not_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The checker is checked: what the recovery that died did outside is what shows the doubling."""
    everything = CrashState.effects.func  # type: ignore[attr-defined]  # the function behind the cached property

    def forgetful(self: CrashState) -> Any:
        return everything(self if self.within is None else self.within.outer)

    monkeypatch.setattr(CrashState, "effects", property(forgetful))
    report = explore(interrupted.MAILS_AGAIN, faults="kill,recovery", out=tmp_path, budget=FAST)
    assert "duplicate-effect" not in {finding.kind for finding in report.findings}


def test_a_temporary_file_that_is_the_good_one_s_other_name(tmp_path: Path) -> None:
    """Both names of a rename after a power loss: a recovery that opens the old one anew empties the good one."""
    subject = interrupted.REUSES_TEMPORARY
    report = explore(subject, faults="power,recovery", profile="btrfs", out=tmp_path, budget=FAST)
    power, recovery = report.faults
    assert (power.violation, recovery.violation > 0) == (0, True), str(report)
    finding = report.findings[0]
    assert finding.id.startswith("power@")
    assert finding.profiles == ("btrfs",)
    assert "both names of a rename" in finding.why
    assert finding.advice[0].startswith("Remove a temporary file")


def test_what_the_killed_run_had_not_synced_is_still_lost_later(tmp_path: Path) -> None:
    """A recovery that goes by what it reads, unsynced, is found by a power loss after a kill, and by that alone."""
    report = explore(interrupted.TRUSTS, faults="kill,power,recovery", out=tmp_path, budget=FAST)
    assert [count.violation > 0 for count in report.faults] == [False, False, True], str(report)
    finding = report.findings[0]
    assert (finding.kind, finding.confirmed) == ("duplicate-effect", None)
    assert finding.id.startswith("kill@")
    assert "/power@" in finding.id
    assert any(line.note == "lost" and line.run == 0 for line in finding.ops), str(report)
    assert finding.profiles


def test_with_a_sync_of_what_it_reads_it_is_clean(tmp_path: Path) -> None:
    """The twin that syncs before it pays bears a power loss after a kill."""
    report = explore(interrupted.SYNCS, faults="kill,power,recovery", out=tmp_path, budget=FAST)
    assert report.verdict == "consistent", str(report)


def test_with_the_past_forgotten_the_trusting_recovery_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The checker is checked: a lab that takes the past of a kill for durable finds nothing."""
    monkeypatch.setattr("crashlab.crash.nested.is_power", lambda _state: True)
    report = explore(interrupted.TRUSTS, faults="kill,power,recovery", out=tmp_path, budget=FAST)
    assert report.faults[-1].violation == 0
