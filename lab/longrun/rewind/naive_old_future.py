"""The one fault: the head is the point that has come furthest, not the newest one.

After a rewind that is the end of the line that was abandoned. The process that rewound never notices, since it goes by
the head that it has just saved; one that resumes after a kill wakes in the abandoned turn 7, and finds itself done.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from longrun.rewind import correct, points
from longrun.rewind.subjects import describe

if TYPE_CHECKING:
    from pathlib import Path

    from longrun.protocol import Checkpoint

_saved_here: dict[Path, Checkpoint] = {}


def save(directory: Path, checkpoint: Checkpoint) -> None:
    """Add a point, and remember it."""
    points.save(directory, checkpoint)
    _saved_here[directory] = checkpoint


def load(directory: Path) -> Checkpoint | None:
    """What this process saved last, else the point with the most turns, and of those the newest."""
    found = points.numbers(directory)
    if directory in _saved_here or not found:
        return _saved_here.get(directory) or points.load(directory)
    return max((points.read_point(directory, seq) for seq in found), key=lambda point: (point.turns, point.seq))


WAYS = replace(correct.WAYS, harness=replace(correct.HARNESS, save=save, load=load))

subject = describe(WAYS, name="rewind/naive_old_future", forks=False)
