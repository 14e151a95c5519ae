"""The one fault: a log that this program does not understand counts as broken, and the session begins anew.

It was written by a newer program, and it is sound. The user, who had only started the older one, finds nothing.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

from longrun.eventlog import scan as correct
from longrun.eventlog.design import DESIGN as CORRECT
from longrun.eventlog.errors import LogUnsupported
from longrun.eventlog.scan import Scan
from longrun.eventlog.segments import segment_numbers, segment_path
from longrun.eventlog.slots import NOTHING
from longrun.eventlog.subjects import bare
from longrun.eventlog.taking_back import take_back

if TYPE_CHECKING:
    from pathlib import Path


class Reader:
    """Reads what it knows, and clears away the rest."""

    def read(self, directory: Path) -> Scan:
        """What is there; nothing where it cannot be understood."""
        try:
            return correct.Reader().read(directory)
        except LogUnsupported:
            for number in segment_numbers(directory):
                path = segment_path(directory, number)
                os.rename(path, f"{path}.broken")
            take_back(directory, NOTHING)
            return Scan(directory)


DESIGN = replace(CORRECT, reader=Reader())

subject = bare(DESIGN, name="eventlog/naive_newer_is_broken")
