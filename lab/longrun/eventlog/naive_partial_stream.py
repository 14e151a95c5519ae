"""The one fault: an answer is taken as it came, whether or not ``message_stop`` was among it.

A proxy may close a stream cleanly in the middle. What a convenient client then holds looks like an answer, and of a
letter that promises money the part with the money is missing.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from longrun.eventlog.conduct import CONDUCT as CORRECT
from longrun.eventlog.subjects import agent_on_log
from longrun.knobs import Knobs
from longrun.stream import Cut

CUT = {5: Knobs(cut=Cut(18))}
"""The fifth answer ends in the middle of a refund, to whoever asks for it after a crash."""


def accept(response: dict[str, Any]) -> dict[str, Any]:
    """Whatever came; why it stopped can be guessed."""
    calls = any(block["type"] == "tool_use" for block in response["content"])
    return {**response, "stop_reason": response["stop_reason"] or ("tool_use" if calls else "end_turn")}


CONDUCT = replace(CORRECT, accept=accept)

subject = agent_on_log(CONDUCT, name="eventlog/naive_partial_stream", knobs=CUT)
