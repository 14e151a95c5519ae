"""Tests of crashcourse.savers and crashcourse.steps: one save of an agent, call by call."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from crashcourse.savers import VALUES, Load, Save, saver, split
from crashcourse.steps import joined, seen, steps_of
from crashlab import Budget, explore

if TYPE_CHECKING:
    from pathlib import Path

LITTLE = Budget(real_kills=0, sample=0)
HOME = "longrun.checkpoint"
STEPS = {
    "correct": [
        ("save is called", "save 1", "save 1"),
        ("a new file is made", "save 1", "save 1"),
        ("its bytes are written", "save 1", "save 1"),
        ("fsync of the new file", "save 1", "save 1"),
        ("rename over the old one", "save 2", "save 1 or save 2"),
        ("fsync of the directory", "save 2", "save 2"),
        ("save has returned", "save 2", "save 2"),
    ],
    "naive_in_place": [
        ("save is called", "save 1", "save 1"),
        ("the old file is emptied", "Damaged", "Damaged or save 1"),
        ("its bytes are written", "save 2", "Damaged or save 1 or save 2"),
        ("fsync of the new file", "save 2", "save 2"),
        ("fsync of the directory", "save 2", "save 2"),
        ("save has returned", "save 2", "save 2"),
    ],
}


@pytest.mark.parametrize("name", STEPS)
def test_each_call_of_a_save_is_told_with_what_a_reader_finds(name: str, tmp_path: Path) -> None:
    """The correct one never shows anything but a whole save, and the new one once it has returned."""
    report = explore(saver(f"{HOME}.{name}"), faults="kill", budget=LITTLE, out=tmp_path)
    steps = steps_of(report, seen(Load(f"{HOME}.{name}")), profile="xfs")
    assert [(step.after, joined(step.kill), joined(step.power)) for step in steps] == STEPS[name]


def test_what_was_saved_is_loaded(tmp_path: Path) -> None:
    """Nothing first, then each value."""
    save, load = Save(f"{HOME}.correct"), Load(f"{HOME}.correct")
    assert load(tmp_path) is None
    for value in VALUES:
        save(tmp_path, value)
        assert load(tmp_path) == value


@pytest.mark.parametrize(("size", "verdict"), [(6_000, "consistent"), (70_000, "violation")])
def test_the_bug_that_passes_is_there_for_large_checkpoints(size: int, verdict: str, tmp_path: Path) -> None:
    """A small one does not meet it."""
    report = explore(split(text_bytes=size), faults="kill", budget=LITTLE, out=tmp_path)
    assert report.verdict == verdict
