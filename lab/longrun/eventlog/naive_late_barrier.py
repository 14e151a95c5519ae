"""The one fault: ``tool/call`` is promised after the body of the tool has run.

A process that dies in the tool leaves no trace of it: the repair says that it was not started.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from longrun.eventlog.conduct import CONDUCT as CORRECT
from longrun.eventlog.subjects import agent_on_log

if TYPE_CHECKING:
    from collections.abc import Callable


def act(promise: Callable[[], None], body: Callable[[], str]) -> str:
    """Do it, then say that it was begun."""
    text = body()
    promise()
    return text


CONDUCT = replace(CORRECT, act=act)

subject = agent_on_log(CONDUCT, name="eventlog/naive_late_barrier", persona="hasty")
