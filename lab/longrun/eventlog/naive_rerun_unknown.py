"""The one fault: an act whose outcome nobody knows is done again when the model names it again.

The log says "unknown" in so many words; nobody reads it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from longrun.eventlog import conduct
from longrun.eventlog.subjects import agent_on_log

if TYPE_CHECKING:
    from longrun.eventlog.log import EventLog
    from longrun.eventlog.project import Act


def known(log: EventLog, key: str) -> Act | None:
    """What is known for sure; an unknown outcome is not."""
    act = conduct.known(log, key)
    return None if act is not None and act.outcome == "unknown" else act


CONDUCT = replace(conduct.CONDUCT, known=known)

subject = agent_on_log(CONDUCT, name="eventlog/naive_rerun_unknown", persona="hasty")
