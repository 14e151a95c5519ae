"""The one fault: what resume makes of the open calls is not saved; the next save is that of the next answer.

The request in between is counted in memory only. A second kill there has it paid and forgotten, each time,
and every resume goes through the same calls again.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from longrun.checkpoint import correct
from longrun.inbox import SHORT_BODY_BYTES
from longrun.subjects import describe

if TYPE_CHECKING:
    from longrun.loop import Agent


def reconcile(agent: Agent) -> None:
    """Answer the open calls, and go on at once."""
    calls = agent.state.pending_tool_use
    if calls:
        agent.state = agent.answered([agent.answer(index) for index in range(len(calls))])


HARNESS = replace(correct.HARNESS, reconcile=reconcile)

subject = describe(HARNESS, name="resume/naive_unsaved_reconcile", body_bytes=SHORT_BODY_BYTES)
