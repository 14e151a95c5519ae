"""The one fault: acts are recorded when all calls of the answer are answered (B), in one go, to save syncs.

Killed after the third act of a turn, the process leaves three of which no file says how they ended, and the
next one must call all three unknown. A record right after each act would have left one.
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
    """Marked and done; the record has time."""
    agent.mark(call, place)
    return tool_result(call.id, agent.do(call, tool))


def close(agent: Agent, results: list[Block]) -> None:
    """Record what was done just now, then save the answers."""
    answered = list(zip(agent.state.pending_tool_use, results, strict=True))
    for index, (call, result) in enumerate(answered, 1):
        known = agent.known(call)
        if call.key is not None and not result.get("is_error") and (known is None or known.outcome != "done"):
            agent.record(call, "done", result["content"], agent.place(f"tool{index}"))
    agent.close(results)


HARNESS = replace(correct.HARNESS, act=act, close=close)

subject = describe(HARNESS, name="effects/naive_record_at_b", persona="hasty", body_bytes=SHORT_BODY_BYTES)
