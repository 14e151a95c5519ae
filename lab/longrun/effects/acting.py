"""The order of one act: marked as begun, done, recorded, each of them durable before the next.

The mark (S) before the act makes "not begun" a fact that a resume may go by; the record right after it
makes "done" one. What lies between the two nobody can know: no order of two writes to a disk and one act
outside closes that window. This order makes it as small as it can be, and keeps it on the side of doubt.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from longrun.loop import Agent
    from longrun.messages import Block
    from longrun.protocol import OpenCall
    from longrun.tools import Tool


def act(agent: Agent, call: OpenCall, tool: Tool, place: str) -> Block:
    """Do the act of ``call`` and return its answer.

    Where the record cannot be written the error is let out: the act is done, and who resumes says so by "unknown".
    """
    agent.mark(call, place)
    result = agent.do(call, tool)
    return agent.record(call, "done", result, place)


def close(agent: Agent, results: list[Block]) -> None:
    """All calls are answered, and each act among them is recorded: save that."""
    agent.close(results)
