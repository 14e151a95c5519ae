"""The one fault: everything behind the last ``turn/end`` counts as a torn tail.

It is the common rule, and needs no mark. One bit that changes in the open turn cuts away what was promised: a call
whose effect is done, and the repair then says that it was not started.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from longrun.eventlog.conduct import CONDUCT as CORRECT
from longrun.eventlog.design import DESIGN as CORRECT_DESIGN
from longrun.eventlog.scan import Reader, sound_lines
from longrun.eventlog.slots import NOTHING
from longrun.eventlog.subjects import agent_on_log, bare

if TYPE_CHECKING:
    from longrun.eventlog.scan import Scan


def promise(scan: Scan, _marks: list[int]) -> int:
    """Up to the last end of a turn that can be read."""
    records = [*scan.records, *sound_lines(scan.tail)]
    return max((record.seq for record in records if record.type == "turn/end"), default=NOTHING)


DESIGN = replace(CORRECT_DESIGN, reader=Reader(promise=promise))
CONDUCT = replace(CORRECT, design=DESIGN)

subject = bare(DESIGN, name="eventlog/naive_cut_after_turn_end")
subject_agent = agent_on_log(CONDUCT, name="eventlog/naive_cut_after_turn_end, an agent", persona="hasty")
