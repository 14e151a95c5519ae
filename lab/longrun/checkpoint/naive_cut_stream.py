"""The one fault: an answer counts as soon as it looks like one, whether or not its stream came to its end.

A proxy that closes the line cleanly raises no error. Behind ``"refund_yen":10`` of 1000 the client shows a call
with an input that parses, and a customer is promised 10 yen. The server that a resumed agent meets cuts
its fifth answer there, once.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from longrun.checkpoint import correct
from longrun.inbox import SHORT_BODY_BYTES
from longrun.knobs import Knobs
from longrun.stream import Cut
from longrun.subjects import describe

CUT = {5: Knobs(cut=Cut('"refund_yen":10'))}


def accept(response: dict[str, Any]) -> dict[str, Any]:
    """Whatever came: with calls it goes on, without it is done."""
    calls = any(block["type"] == "tool_use" for block in response.get("content", ()))
    return {**response, "stop_reason": "tool_use" if calls else "end_turn"}


HARNESS = replace(correct.HARNESS, accept=accept)

subject = describe(HARNESS, name="checkpoint/naive_cut_stream", body_bytes=SHORT_BODY_BYTES, knobs=CUT)
