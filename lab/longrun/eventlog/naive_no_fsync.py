"""The one fault: nothing is synced.

No kill shows it. After a power loss the log may end before a call whose effect is done; the repair says that it was
not started, and it is done again.
"""

from __future__ import annotations

from dataclasses import replace

from longrun.eventlog.conduct import CONDUCT as CORRECT
from longrun.eventlog.subjects import agent_on_log


def sync(_descriptor: int) -> None:
    """Trust the cache."""


CONDUCT = replace(CORRECT, design=replace(CORRECT.design, sync=sync))

subject = agent_on_log(CONDUCT, name="eventlog/naive_no_fsync", persona="hasty", tells=False)
