"""The one fault: a file beside the points says which of them is the head, so there are two truths.

Both are written durably, one after the other. A kill between them leaves a point that is newer than the head, and its
number is taken when the resumed run comes to save under it.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

from longrun.files import sync_directory, temporary_name, write_new
from longrun.rewind import correct, points
from longrun.rewind.subjects import describe

if TYPE_CHECKING:
    from pathlib import Path

    from longrun.protocol import Checkpoint

HEAD_NAME = "HEAD"


def save(directory: Path, checkpoint: Checkpoint) -> None:
    """Add a point, then point to it."""
    points.save(directory, checkpoint)
    temporary = temporary_name(directory / HEAD_NAME)
    write_new(temporary, b"%d" % checkpoint.seq, sync=True)
    os.rename(temporary, directory / HEAD_NAME)
    sync_directory(directory)


def load(directory: Path) -> Checkpoint | None:
    """The point to which the file points."""
    try:
        seq = int((directory / HEAD_NAME).read_bytes())
    except FileNotFoundError:
        return points.load(directory)
    return points.read_point(directory, seq)


WAYS = replace(correct.WAYS, harness=replace(correct.HARNESS, save=save, load=load))

subject = describe(WAYS, name="rewind/naive_head_file", forks=False)
