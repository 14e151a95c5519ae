"""The one fault: point A is saved before the assistant message is appended, so the calls stand there without it.

The resumed process answers calls that its transcript does not name, and the server refuses the results as
orphans. Text and order of the lost message cannot be made up again from the calls.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from longrun.checkpoint import correct
from longrun.inbox import SHORT_BODY_BYTES
from longrun.resume import trusting
from longrun.subjects import describe

if TYPE_CHECKING:
    from pathlib import Path

    from longrun.protocol import Checkpoint


def save(directory: Path, checkpoint: Checkpoint) -> None:
    """Save open calls with the transcript as it was before they were named."""
    early = checkpoint.pending_tool_use and checkpoint.messages[-1]["role"] == "assistant"
    correct.save(directory, replace(checkpoint, messages=checkpoint.messages[:-1]) if early else checkpoint)


HARNESS = replace(trusting.HARNESS, save=save)

subject = describe(HARNESS, name="resume/naive_save_before_push", body_bytes=SHORT_BODY_BYTES)
