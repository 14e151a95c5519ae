"""Probes of what the recorders see: raw descriptors, mappings, child processes, a C library."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from crashlab import Store, explore
from crashlab.subject import BRIEF
from tests.crashlab.here import needs_strace
from tests.quality import probes

if TYPE_CHECKING:
    from pathlib import Path

    from crashlab.report.model import Report

FEW = replace(BRIEF, violations=1, real_kills=2, anew=2)


def tried(store: Store, tmp_path: Path, faults: str, recorder: str) -> Report:
    """A check in which nothing stayed unmeasured, recorded as it must be, of its own accord."""
    report = explore(store, faults=faults, budget=FEW, out=tmp_path)
    assert report.unmeasured == (), str(report)
    assert report.settings.recorder == recorder
    return report


@pytest.mark.parametrize("faults", ["kill", "power"])
def test_two_writes_into_an_emptied_file_are_found(tmp_path: Path, faults: str) -> None:
    """A kill between them leaves half; the fsync at the end mends nothing."""
    report = tried(probes.WRITE_IN_TWO, tmp_path, faults, "python")
    assert report.verdict == "violation", str(report)
    assert {finding.kind for finding in report.findings} <= {"lost", "stuck"}


def test_a_synced_file_that_is_renamed_is_clean(tmp_path: Path) -> None:
    """fdatasync of a new file is enough: its size and its bytes are there before its name."""
    assert tried(probes.RENAME_SYNCED, tmp_path, "kill,power", "python").verdict == "consistent"


def test_a_rename_without_fsync_is_found_under_power_only(tmp_path: Path) -> None:
    """A kill takes nothing that was written."""
    assert tried(probes.RENAME_ONLY, tmp_path, "kill", "python").verdict == "consistent"
    assert tried(probes.RENAME_ONLY, tmp_path, "power", "python").verdict == "violation"


@needs_strace
def test_a_mapping_changed_in_place_is_found(tmp_path: Path) -> None:
    """Pages that no call wrote: seen from outside, of the lab's own accord."""
    report = tried(probes.MAPPED, tmp_path, "kill", "strace")
    assert report.verdict == "violation", str(report)


@needs_strace
@pytest.mark.parametrize(("store", "verdict"), [("BROKEN_CHILD", "violation"), ("CORRECT_CHILD", "consistent")])
def test_what_a_child_process_writes_is_judged(tmp_path: Path, store: str, verdict: str) -> None:
    """Overwritten in place by another process, or replaced as it should be."""
    report = tried(getattr(probes, store), tmp_path, "kill,power", "strace")
    assert report.verdict == verdict, str(report)


@needs_strace
def test_sqlite_as_it_comes_is_clean_under_kill_and_loses_a_commit_under_power(tmp_path: Path) -> None:
    """Synchronous FULL with a rollback journal: the journal comes back, since its removal was not synced."""
    assert tried(probes.DATABASE, tmp_path, "kill", "strace").verdict == "consistent"
    report = tried(probes.DATABASE, tmp_path, "power", "strace")
    assert report.verdict == "violation", str(report)
    for finding in report.findings:
        lost = [op for op in finding.ops if op.note == "lost"]
        assert any(op.op == "unlink" and op.path.endswith("-journal") for op in lost), str(report)


@needs_strace
def test_sqlite_with_synchronous_extra_is_clean(tmp_path: Path) -> None:
    """It syncs the directory once the journal is gone."""
    report = tried(probes.DATABASE_EXTRA, tmp_path, "kill,power", "strace")
    assert report.verdict == "consistent", str(report)
