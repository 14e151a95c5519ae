"""The one fault: a record is shown before it is written.

After a write that failed the projection holds what the file does not. Whoever looks there finds the record, and does
not write it again.
"""

from __future__ import annotations

from dataclasses import replace

from longrun.eventlog.design import DESIGN as CORRECT
from longrun.eventlog.subjects import bare

DESIGN = replace(CORRECT, shows_queued=True)

subject = bare(DESIGN, name="eventlog/naive_memory_first")
