"""The one fault: a fork keeps its points in the folder of the run, where the name of its timeline tells them apart.

Each line finds its own head, and a run that is over before its fork begins never shows it. But the lease of a fork is
another one than that of the run: who opens the run while the fork is at work clears away the temporary file that
the fork is about to give its name.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from longrun.errors import HistoryExists
from longrun.rewind import correct, points, timelines
from longrun.rewind.subjects import describe, points_in

if TYPE_CHECKING:
    from pathlib import Path

    from longrun.harness import Harness
    from longrun.protocol import Checkpoint
    from longrun.rewind.timelines import Goal


def line(directory: Path) -> list[Checkpoint]:
    """The points of one line among those of all."""
    name = directory.name if points.is_fork(directory) else "main"
    return [point for point in points_in(points.run_of(directory)) if point.timeline.partition("@")[0] == name]


def save(directory: Path, checkpoint: Checkpoint) -> None:
    """Add a point to the one folder."""
    points.save(points.run_of(directory), checkpoint)


def load(directory: Path) -> Checkpoint | None:
    """The newest point of this line."""
    own = line(directory)
    return own[-1] if own else points.load(directory)


def fork(harness: Harness, directory: Path, name: str, goal: Goal) -> Path:
    """Add the copy behind the newest point of all."""

    def save_instead(there: Path, copy: Checkpoint) -> None:
        if line(there):
            text = f"there is a fork {name!r} already"
            raise HistoryExists(text)
        save(there, replace(copy, seq=points.numbers(directory)[-1] + 1))

    return timelines.fork(replace(harness, save=save_instead), directory, name, goal)


WAYS = replace(correct.WAYS, harness=replace(correct.HARNESS, save=save, load=load), fork=fork, line=line)

subject = describe(WAYS, name="rewind/naive_shared_head")
