"""The one fault: a turn that was cut off is removed at the next opening, as if it had never been begun.

The history is tidy again. The effects of the turn stay in the world, and nothing in the log tells of them.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

from longrun.eventlog import mending
from longrun.eventlog.conduct import CONDUCT as CORRECT
from longrun.eventlog.lease import STRIDE
from longrun.eventlog.scan import Reader
from longrun.eventlog.segments import LEASE_NAME, MARK_NAME, segment_path
from longrun.eventlog.slots import NOTED, SLOTS, fresh, read_slots, slot_of
from longrun.eventlog.subjects import agent_on_log

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
    (scan.directory / MARK_NAME).write_bytes(fresh(first - 1))
    lease = scan.directory / LEASE_NAME
    half = slot_of(max(read_slots(lease.read_bytes(), STRIDE))) + slot_of(first - 1, NOTED)
    lease.write_bytes(half * SLOTS)
    vars(scan).update(vars(Reader().read(scan.directory)))


CONDUCT = replace(CORRECT, design=replace(CORRECT.design, mend=mend))

subject = agent_on_log(CONDUCT, name="eventlog/naive_drop_turn", persona="hasty")
