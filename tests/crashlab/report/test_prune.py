"""Old runs go, the newest stay, and nothing that is not ours is touched."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tests.crashlab.report.samples import finished

if TYPE_CHECKING:
    from pathlib import Path


def old_run(runs: Path, number: int, *, pid: int = 2**22 + 1, report: bool = True) -> Path:
    """A run folder of long ago; the default pid is one that no Linux system gives."""
    run = runs / f"20200101T000000.{number:06}Z-old-{pid}"
    run.mkdir(parents=True)
    if report:
        (run / "report.json").write_text("{}")
    return run


def test_the_newest_20_runs_stay(tmp_path: Path) -> None:
    """Of 30 the oldest 10 go, with files that may not be entered in them."""
    runs = [old_run(tmp_path / "runs", number) for number in range(29)]
    (runs[0] / "locked").mkdir(mode=0)
    newest = finished(tmp_path)
    kept = sorted(os.listdir(tmp_path / "runs"))
    assert kept == [*(run.name for run in runs[-19:]), newest.path.name]


def test_only_run_folders_are_removed(tmp_path: Path) -> None:
    """Notes of the user, links, and runs that are still being written stay."""
    runs = tmp_path / "runs"
    writing = old_run(runs, 0, pid=os.getpid(), report=False)
    dead = old_run(runs, 1, report=False)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (runs / "20200101T000000.000002Z-link-1").symlink_to(elsewhere)
    (runs / "my notes").mkdir()
    for number in range(10, 30):
        old_run(runs, number)
    finished(tmp_path)
    assert writing.exists()
    assert not dead.exists()
    assert elsewhere.exists()
    assert (runs / "my notes").exists()
    assert (runs / "20200101T000000.000002Z-link-1").is_symlink()


def test_what_a_killed_prune_left_is_removed(tmp_path: Path) -> None:
    """A folder that was renamed to be removed goes at the next run."""
    doomed = tmp_path / "runs" / "~removed-20200101T000000.000000Z-old-1"
    (doomed / "below").mkdir(parents=True)
    finished(tmp_path)
    assert not doomed.exists()
