"""The one fault: who only reads mends what it reads.

A log that is damaged is cut at the first line that cannot be read, and then refused. The bytes behind it, by which
somebody might have told what happened, are gone.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

from longrun.eventlog import scan as correct
from longrun.eventlog.design import DESIGN as CORRECT
from longrun.eventlog.errors import LogDamaged
from longrun.eventlog.subjects import inspected

if TYPE_CHECKING:
    from pathlib import Path

    from longrun.eventlog.scan import Scan


class Reader:
    """Reads, and leaves a log that reads well."""

    def read(self, directory: Path) -> Scan:
        """What is there. What is not good is cut off, also where it is then refused."""
        try:
            return correct.Reader().read(directory)
        except LogDamaged as damage:
            if damage.kind == "bad-line":
                os.truncate(damage.path, damage.byte)
            raise


DESIGN = replace(CORRECT, reader=Reader())

subject = inspected(DESIGN, name="eventlog/naive_inspect_repairs")
