"""The one fault: an act is recorded as done before it is done, "so that no kill can have it done twice".

Killed between the two, it is in the ledger and was never done. A resume takes the record's word for it: a customer
waits for a reply, a ticket has no label, and nobody knows. Killed before the record, the process that resumes calls
a page unknown that cannot have rung.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from longrun.effects import correct
from longrun.inbox import SHORT_BODY_BYTES
from longrun.subjects import describe

if TYPE_CHECKING:
    from longrun.loop import Agent
    from longrun.messages import Block
    from longrun.protocol import OpenCall
    from longrun.tools import Tool


def act(agent: Agent, call: OpenCall, tool: Tool, place: str) -> Block:
    """Marked, recorded, done. What it will return is not known yet, so the record says that it went well."""
    agent.mark(call, place)
    answer = agent.record(call, "done", f"{tool.name}: done", place)
    agent.do(call, tool)
    return answer


HARNESS = replace(correct.HARNESS, act=act)

subject = describe(HARNESS, name="effects/naive_record_first", persona="hasty", body_bytes=SHORT_BODY_BYTES)
