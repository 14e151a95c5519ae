"""The checker is checked: a fault planted in the lab itself turns a named demand red.

Each demand below holds on the real lab and is held here against the sabotaged one; a demand that
stays green under its sabotage would be worth nothing.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from crashlab import explore
from crashlab import trace as t
from crashlab.crash.states import CrashState
from crashlab.judge import Judge, Judgement
from crashlab.recover.host import Host
from crashlab.report.folder import RunFolder
from tests.quality import programs, stores

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from crashlab.observation import Answer

STORE = "tests.quality.planted_lab_faults:STORE"
KEYED = "tests.quality.planted_lab_faults:KEYED"


def demand_a_proved_recording(out: Path) -> None:
    """The correct store is consistent, and the replay proof holds, without a second recorder's help."""
    report = explore(STORE, out=out, recorder="python")
    assert report.verdict == "consistent", str(report)


def demand_every_fsync_on_record(out: Path) -> None:
    """Each of the four saves syncs its file and its directory."""
    explore(STORE, out=out)
    synced = Counter(op.path for op in RunFolder.open(None, out).trace().ops if isinstance(op, t.Fsync))
    assert synced == {"dir/value.json.tmp": 4, "dir": 4}


def demand_planted_faults_found(out: Path) -> None:
    """The in-place store is a violation."""
    assert explore(stores.IN_PLACE, out=out).verdict == "violation"


def demand_double_payment_found(out: Path) -> None:
    """The program that pays twice is found, by that kind."""
    assert "duplicate-effect" in {finding.kind for finding in explore(programs.PAYS_TWICE, out=out).findings}


def demand_keyed_payment_clean(out: Path) -> None:
    """The outside world remembers its keys over a crash."""
    assert explore(KEYED, out=out).verdict == "consistent"


DEMANDS = (
    demand_a_proved_recording,
    demand_every_fsync_on_record,
    demand_planted_faults_found,
    demand_double_payment_found,
    demand_keyed_payment_clean,
)


@pytest.mark.parametrize("demand", DEMANDS)
def test_the_real_lab_meets_the_demand(demand: Any, tmp_path: Path) -> None:
    """Without sabotage every demand is green."""
    demand(tmp_path)


@pytest.mark.parametrize(
    ("plant", "demand"),
    [
        ("drop writes", demand_a_proved_recording),
        ("drop fsyncs", demand_every_fsync_on_record),
        ("forget effects", demand_keyed_payment_clean),
    ],
)
def test_a_fault_planted_in_the_servers_is_seen(
    plant: str, demand: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A recorder that drops ops, and an outside world that forgets, turn their demand red."""
    monkeypatch.setenv("PLANT", plant)
    with pytest.raises(AssertionError):
        demand(tmp_path)


def test_a_dropped_write_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The replay proof says which file has bytes that no op explains."""
    monkeypatch.setenv("PLANT", "drop writes")
    report = explore(STORE, out=tmp_path, recorder="python")
    [reason] = [reason for reason in report.unmeasured if reason.code == "unseen-writer"]
    assert "value.json" in reason.detail


def test_a_judge_that_always_says_consistent_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Then the planted fault is not found."""

    def blind(_self: Judge, state: CrashState, _answer: Answer) -> Judgement:
        return Judgement(state=state, verdict="consistent")

    monkeypatch.setattr(Judge, "judge", blind)
    with pytest.raises(AssertionError):
        demand_planted_faults_found(tmp_path)


def test_a_recovery_that_is_never_called_is_no_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """States without an answer make the result unmeasured, whatever the rest says."""
    real = Host.recover

    def lazy(self: Host, requests: Iterable[dict[str, Any]]) -> Iterator[Answer]:
        kept = [request for request in requests if len(request["steps"]) == 1]  # the controls still run
        yield from real(self, kept)

    monkeypatch.setattr(Host, "recover", lazy)
    with pytest.raises(AssertionError):
        demand_a_proved_recording(tmp_path)


def test_a_judge_that_forgets_earlier_effects_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If what was done before the crash does not count, nobody ever pays twice."""
    monkeypatch.setattr(CrashState, "effects", ())
    with pytest.raises(AssertionError):
        demand_double_payment_found(tmp_path)
