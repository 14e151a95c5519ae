"""The one fault: of a point's number the last three digits are read; the writer writes as many as there are.

So point 1000 is number 0, and from there on the head is point 999 for ever. A run has to be long to meet it: here it
begins with point 975, so that the rewind adds point 998.
"""

from __future__ import annotations

import os
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from longrun.protocol import decode
from longrun.rewind import correct, points
from longrun.rewind.subjects import describe

if TYPE_CHECKING:
    from pathlib import Path

    from longrun.protocol import Checkpoint

FIRST_SEQ = 975
_POINT = re.compile(r"0*([0-9]{3})\.json$")


def load(directory: Path) -> Checkpoint | None:
    """The head: the point with the highest number below 1000."""
    folder = directory / points.POINTS_NAME
    names = os.listdir(folder) if folder.is_dir() else []
    found = [(int(point[1]), name) for name in names if (point := _POINT.search(name))]
    if not found:
        return points.load(directory)
    path = folder / max(found)[1]
    return decode(path.read_bytes(), path)


WAYS = replace(correct.WAYS, harness=replace(correct.HARNESS, load=load))

subject = describe(WAYS, name="rewind/naive_three_digits", first_seq=FIRST_SEQ)
