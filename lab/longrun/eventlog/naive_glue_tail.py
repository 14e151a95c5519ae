"""The one fault: an opening appends behind a torn tail.

The next record then shares a line with half a record. It was promised, and nobody can read it.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

from longrun.eventlog.design import DESIGN as CORRECT
from longrun.eventlog.segments import segment_path
from longrun.eventlog.subjects import bare
from longrun.files import sync_directory

if TYPE_CHECKING:
    from longrun.eventlog.scan import Scan


def mend(scan: Scan) -> None:
    """All is well: whoever reads passes the tail over."""
    scan.size = os.stat(segment_path(scan.directory, scan.segment)).st_size
    scan.tail = b""
    sync_directory(scan.directory)


DESIGN = replace(CORRECT, mend=mend)

subject = bare(DESIGN, name="eventlog/naive_glue_tail")
