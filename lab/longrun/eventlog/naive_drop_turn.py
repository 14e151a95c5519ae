"""The one fault: a turn that was cut off is removed at the next opening, as if it had never been begun.

The history is tidy again. The effects of the turn stay in the world, and nothing in the log tells of them.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

from longrun.eventlog import mending
from longrun.eventlog.conduct import CONDUCT as CORRECT
from longrun.eventlog.scan import Reader
from longrun.eventlog.segments import segment_path
from longrun.eventlog.subjects import agent_on_log
from longrun.eventlog.taking_back import take_back

if TYPE_CHECKING:
    from longrun.eventlog.scan import Scan


def mend(scan: Scan) -> None:
    """Cut the open turn off, and take back the promises of its records, in the lease too."""
    mending.mend(scan)
    if not scan.grammar.open:
        return
    first = max(record.seq for record in scan.records if record.type == "turn/start")
    number, offset = scan.records.places[first]
    os.truncate(segment_path(scan.directory, number), offset)
    take_back(scan.directory, first - 1)
    vars(scan).update(vars(Reader().read(scan.directory)))


CONDUCT = replace(CORRECT, design=replace(CORRECT.design, mend=mend))

subject = agent_on_log(CONDUCT, name="eventlog/naive_drop_turn", persona="hasty")
