"""The one fault: where the record of an act cannot be written, the model is told that the act has failed.

It was done. What has failed is to write it down, and the model does what anyone does with a failure: it tries
again, under a new id, and the customer is paid twice. It takes a full disk: no kill and no power loss shows it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from longrun.effects import correct
from longrun.inbox import SHORT_BODY_BYTES
from longrun.messages import tool_result
from longrun.subjects import describe

if TYPE_CHECKING:
    from longrun.loop import Agent
    from longrun.messages import Block
    from longrun.protocol import OpenCall
    from longrun.tools import Tool


def act(agent: Agent, call: OpenCall, tool: Tool, place: str) -> Block:
    """Marked, done, recorded; an error on the way is the model's to deal with."""
    agent.mark(call, place)
    result = agent.do(call, tool)
    try:
        return agent.record(call, "done", result, place)
    except OSError as error:
        return tool_result(call.id, f"failed: {error.strerror}", is_error=True)


HARNESS = replace(correct.HARNESS, act=act)

subject = describe(HARNESS, name="effects/naive_error_after_success", persona="hasty", body_bytes=SHORT_BODY_BYTES)
