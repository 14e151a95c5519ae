"""Barriers held against the real recovery: what is missing is told, and what is too much."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from crashlab import Budget, Store, explore
from tests.crashlab.subjects import DURABLE_SMALL, SMALL, load

QUICK = Budget(real_kills=0)


def save_too_well(directory: Path, value: Any) -> None:
    """Right, with one fsync of the directory that nothing needs."""
    with (directory / "v.tmp").open("w") as file:
        file.write(json.dumps(value))
        file.flush()
        os.fsync(file.fileno())
    descriptor = os.open(directory, os.O_RDONLY)
    os.fsync(descriptor)
    (directory / "v.tmp").rename(directory / "v.json")
    os.fsync(descriptor)
    os.close(descriptor)


def save_in_place(directory: Path, value: Any) -> None:
    """No barrier can mend this one."""
    with (directory / "v.json").open("w") as file:
        file.write(json.dumps(value))
        file.flush()
        os.fsync(file.fileno())


def save_unsynced(directory: Path, value: Any) -> None:
    """In place, and never synced."""
    (directory / "v.json").write_text(json.dumps(value))


def in_tmp(act: Any) -> Any:
    """The same, in the place that a power loss empties."""
    return lambda _directory, *value: act(Path(os.environ["TMPDIR"]), *value)


UNSYNCED_IN_PLACE = Store(save_unsynced, load, values=[{"n": 1}, {"n": 2}])
IN_TMP = Store(in_tmp(save_too_well), in_tmp(load), values=[{"n": 1}])
TOO_WELL = Store(save_too_well, load, values=[{"n": 1}, {"n": 2}])
IN_PLACE = Store(save_in_place, load, values=[{"n": 1}, {"n": 2}])


def test_the_missing_barriers_are_named(tmp_path: Path) -> None:
    """File before the rename, directory after it, in each save; and what that brings."""
    report = explore(SMALL, faults="power", out=tmp_path, budget=QUICK)
    advice = " ".join(report.findings[0].advice)
    assert "fsync v.tmp between ops 3 and 4" in advice
    assert "its directory between ops 4 and 5" in advice
    assert "With both, all " in advice


def test_where_no_barrier_helps_the_protocol_is_to_blame(tmp_path: Path) -> None:
    """An overwriting in place stays wrong under any number of syncs."""
    report = explore(IN_PLACE, faults="power", out=tmp_path, budget=QUICK)
    advice = " ".join(report.findings[0].advice)
    assert advice.startswith("No barrier mends it")
    assert "rename" in advice


@pytest.mark.parametrize(("store", "told"), [(TOO_WELL, "2 of 6 barriers"), (DURABLE_SMALL, "none of the 4 barriers")])
def test_a_barrier_that_changes_nothing_is_told(store: Store, told: str, tmp_path: Path) -> None:
    """Only where it was asked for; the one that is needed is never among them."""
    report = explore(store, faults="power", redundant=True, out=tmp_path, budget=QUICK)
    notes = [note for note in report.notes if note.startswith("redundant")]
    assert any(told in note for note in notes), notes
    plain = explore(store, faults="power", out=tmp_path, budget=QUICK)
    assert not [note for note in plain.notes if note.startswith("redundant")]


def test_without_power_losses_nothing_is_said_of_barriers(tmp_path: Path) -> None:
    """A kill keeps what was not synced: no barrier would seem needed."""
    report = explore(TOO_WELL, faults="kill", redundant=True, out=tmp_path, budget=QUICK)
    assert "needs the fault power" in " ".join(report.notes)


def test_of_a_subject_that_fails_no_barrier_is_called_redundant(tmp_path: Path) -> None:
    """What seems to change nothing there may be what the mended one needs."""
    report = explore(SMALL, faults="power", redundant=True, out=tmp_path, budget=QUICK)
    assert [note for note in report.notes if "redundant" in note] == [
        "redundant barriers were not looked for: mend what fails first, it may need them."
    ]


def test_what_barriers_mend_is_told_beside_what_they_do_not(tmp_path: Path) -> None:
    """Acked before it is synced, and in place: the protocol comes first, then the fsync that helps the rest."""
    report = explore(UNSYNCED_IN_PLACE, faults="power", out=tmp_path, budget=QUICK)
    advice = " ".join(report.findings[0].advice)
    assert advice.startswith("No barrier mends it")
    assert "are mended by barriers alone: fsync" in advice
    assert "v.json between ops 3 and 4" in advice


def test_a_search_that_has_no_time_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends, and claims nothing."""
    monkeypatch.setattr("crashlab.barrier_trials.SHARE_OF_TIME", 1e12)
    report = explore(SMALL, faults="power", out=tmp_path, budget=QUICK)
    assert report.findings[0].advice == ("Which barriers would mend it was not found out in time.",)


def test_state_in_the_temporary_place_is_told_as_such(tmp_path: Path) -> None:
    """No sync keeps it over a power loss: neither cause nor remedy is a barrier."""
    report = explore(IN_TMP, faults="power", out=tmp_path, budget=QUICK)
    assert "$TMPDIR" in report.findings[0].why
    assert "lab.dir or the home directory" in " ".join(report.findings[0].advice)
