"""The one fault: resume drops the assistant message whose calls are open, and asks the model again.

The transcript is valid, and the model names the same acts under new ids. But with the message the
mark went that one of them had been started: if it was done just before the kill, it is done twice.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from longrun.checkpoint import correct
from longrun.inbox import SHORT_BODY_BYTES
from longrun.subjects import describe

if TYPE_CHECKING:
    from longrun.protocol import Checkpoint


def reopen(saved: Checkpoint) -> Checkpoint:
    """The checkpoint without its open calls."""
    asked_again = replace(saved, requests_started=saved.requests_started + 1)
    if not saved.pending_tool_use:
        return asked_again
    return replace(asked_again, messages=saved.messages[:-1], turns=saved.turns - 1, pending_tool_use=())


HARNESS = replace(correct.HARNESS, reopen=reopen)

subject = describe(HARNESS, name="resume/naive_drop_call", body_bytes=SHORT_BODY_BYTES)
