"""The one fault: the time is a part of an act's name, "so that two replies to one ticket do not get mixed up".

The call that is saved keeps its name over a kill. Named again by the hasty model, the same reply has another one,
and is sent a second time.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from longrun.effects import correct
from longrun.inbox import SHORT_BODY_BYTES
from longrun.subjects import describe
from longrun.tools import act_key

if TYPE_CHECKING:
    from longrun.messages import Block
    from longrun.tools import Tool


def key(run_id: str, tool: Tool, call: Block) -> str | None:
    """Run, ticket, act and the nanosecond at which it was named; None for a read."""
    name = act_key(run_id, tool, call)
    return None if name is None else f"{name}/{time.time_ns()}"


HARNESS = replace(correct.HARNESS, key=key)

subject = describe(HARNESS, name="effects/naive_time_key", persona="hasty", body_bytes=SHORT_BODY_BYTES)
