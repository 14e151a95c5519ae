"""Barriers held against the real recovery: what is missing is told, and what is too much."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest

from crashlab import Budget, Store, explore
from tests.crashlab.subjects import DURABLE_SMALL, SMALL, load

if TYPE_CHECKING:
    from pathlib import Path

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
