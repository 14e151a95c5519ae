"""The one fault: an act is called by the id of the call that named it.

That stops one call from being done twice, and no more. After "outcome unknown" the hasty model names the reply
again; the call has a new id, so it is a new act, of which the ledger knows nothing.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from longrun.effects import correct
from longrun.inbox import SHORT_BODY_BYTES
from longrun.subjects import describe

if TYPE_CHECKING:
    from longrun.messages import Block
    from longrun.tools import Tool


def key(_run_id: str, tool: Tool, call: Block) -> str | None:
    """The id of the call; None for a read."""
    return None if tool.nature == "read-only" else str(call["id"])


HARNESS = replace(correct.HARNESS, key=key)

subject = describe(HARNESS, name="effects/naive_id_key", persona="hasty", body_bytes=SHORT_BODY_BYTES)
