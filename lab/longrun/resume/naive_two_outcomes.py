"""The one fault: resume saves each result as it comes, and that the calls are closed only after all of them.

Killed in between, the next process finds calls that are open and answered, and answers them again: two
results for one id, which the server refuses. One kill never shows it; the second must hit the recovery.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from longrun.inbox import SHORT_BODY_BYTES
from longrun.resume import trusting
from longrun.subjects import describe

if TYPE_CHECKING:
    from longrun.loop import Agent


def reconcile(agent: Agent) -> None:
    """Answer the open calls one by one, each result saved; then close them."""
    calls = agent.state.pending_tool_use
    for index in range(len(calls)):
        result = agent.answer(index)
        *before, last = agent.state.messages
        if last["role"] == "assistant":
            before, last = [*before, last], {"role": "user", "content": []}
        told = {**last, "content": [*last["content"], result]}
        agent.save(agent.place(f"tool{index + 1}.B"), replace(agent.state, messages=(*before, told)))
    if calls:
        started = agent.state.requests_started + 1
        agent.save(agent.place("B"), replace(agent.state, pending_tool_use=(), requests_started=started))


HARNESS = replace(trusting.HARNESS, reconcile=reconcile)

subject = describe(HARNESS, name="resume/naive_two_outcomes", body_bytes=SHORT_BODY_BYTES)
