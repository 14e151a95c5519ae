"""The naive agents that power losses, damage, I/O errors and a second owner find: under any name, and no longer mended.

That each is found, by its kind and its family alone: ``test_planted_agents``, ``test_planted_errors``,
``test_planted_race``. Here the mend is applied, and a copy without name, docstring and title is tried.
"""

from __future__ import annotations

import importlib
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from crashlab import Budget, Store, Subject, explore
from longrun.checkpoint import (
    correct,
    naive_any_version,
    naive_fixed_tmp,
    naive_fsync_after_rename,
    naive_fsync_wrong_file,
    naive_no_checksum,
    naive_no_dirsync,
    naive_no_fsync,
    naive_none_on_error,
    naive_retry_fsync,
    naive_swallow_enospc,
)
from longrun.inbox import SHORT_BODY_BYTES
from longrun.subjects import describe
from tests.quality.naive_agents import Planted
from tests.quality.test_planted_race import CHECKPOINTS
from tests.quality.test_planted_resumes import renamed

if TYPE_CHECKING:
    from pathlib import Path

    from longrun.harness import Harness

BRIEF = Budget(real_kills=1, subset=2, violations=2, sample=12)
OTHERS: dict[str, Planted] = {
    "no fsync": Planted(naive_no_fsync, "stuck", ("save",), "power"),
    "no fsync of the directory": Planted(naive_no_dirsync, "duplicate-effect", ("save",), "power"),
    "fsync of the wrong file": Planted(naive_fsync_wrong_file, "stuck", ("save",), "power"),
    "fsync after the rename": Planted(naive_fsync_after_rename, "stuck", ("save",), "power"),
    "no checksum": Planted(naive_no_checksum, "accepted-damage", ("load",), "damage:bit"),
    "any version": Planted(naive_any_version, "accepted-damage", ("load",), "damage:version"),
    "none on error": Planted(naive_none_on_error, "silent-reset", ("load",), "damage:empty,damage:nested"),
    "swallowed error": Planted(naive_swallow_enospc, "duplicate-effect", ("save",), "error:ENOSPC"),
    "fsync again": Planted(naive_retry_fsync, "stuck", ("save",), "error:failed-fsync"),
    "one temporary name": Planted(naive_fixed_tmp, "stuck", ("save",), "race"),
}
"""By what is wrong: module, kind, the exchanged piece, and what shows it."""


def tried(harness: Harness, faults: str) -> Subject | Store:
    """What is checked: the agent; where two owners race, its save and load alone, since its lease keeps them apart."""
    if faults != "race":
        return describe(harness, name="agent", body_bytes=SHORT_BODY_BYTES)
    return Store(harness.save, harness.load, values=CHECKPOINTS, view=lambda checkpoint: checkpoint.to_json())


@pytest.mark.parametrize("fault", OTHERS)
def test_its_one_mend_makes_it_the_twin(fault: str) -> None:
    """It differs from the correct agent in the one piece, and in nothing else."""
    planted = OTHERS[fault]
    assert planted.module.HARNESS != correct.HARNESS
    assert planted.mended() == correct.HARNESS


@pytest.mark.full
@pytest.mark.parametrize("fault", OTHERS)
def test_mended_it_is_clean(fault: str, tmp_path: Path) -> None:
    """Under what shows the fault."""
    planted = OTHERS[fault]
    report = explore(tried(planted.mended(), planted.faults), faults=planted.faults, out=tmp_path, budget=BRIEF)
    assert report.verdict == "consistent", str(report)
    assert all(count.judged > 1 for count in report.faults), str(report)


@pytest.mark.full
@pytest.mark.parametrize("fault", OTHERS)
def test_a_renamed_copy_is_found_just_the_same(fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the state in which the module itself was found, of the same kind."""
    planted = OTHERS[fault]
    subject = tried(planted.module.HARNESS, planted.faults)
    report = explore(subject, faults=planted.faults, out=tmp_path, budget=replace(BRIEF, real_kills=0))
    first = next(finding.id for finding in report.findings if finding.kind == planted.kind)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "plain_agent", raising=False)
    copy = importlib.import_module(renamed(planted, tmp_path).partition(":")[0])
    again = explore(
        tried(copy.HARNESS, planted.faults), faults=planted.faults, only=first, out=tmp_path / "copy", budget=BRIEF
    )
    assert again.verdict == "violation", str(again)
    assert (planted.kind, first) in {(finding.kind, finding.id) for finding in again.findings}, str(again)
