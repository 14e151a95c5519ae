"""The one fault: a rewind removes the points behind its target, and their numbers are used again.

The newest point is then the right one, without any copy. But the line that was left is gone: nobody can look
at what was tried there, or go back to it.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

from longrun.rewind import correct, points, timelines
from longrun.rewind.subjects import describe

if TYPE_CHECKING:
    from pathlib import Path

    from longrun.harness import Harness
    from longrun.protocol import Checkpoint
    from longrun.rewind.timelines import Goal


def rewind(harness: Harness, directory: Path, goal: Goal) -> Checkpoint:
    """Remove what lies behind the target, newest first, and add the copy there."""

    def save_instead(there: Path, copy: Checkpoint) -> None:
        assert copy.parent is not None
        for seq in reversed(range(copy.parent + 1, copy.seq)):
            os.unlink(points.path_of(there, seq))
        points.save(there, replace(copy, seq=copy.parent + 1))

    copy = timelines.rewind(replace(harness, save=save_instead), directory, goal)
    return points.read_point(directory, (copy.parent or 0) + 1)


WAYS = replace(correct.WAYS, rewind=rewind)

subject = describe(WAYS, name="rewind/naive_overwrites_points")
