"""The one fault: of parallel calls only the first is saved as open, as if a model named one at a time.

The resumed process answers that one. The server misses the results of the others, and refuses.
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
    """Save the checkpoint with the first of its open calls."""
    correct.save(directory, replace(checkpoint, pending_tool_use=checkpoint.pending_tool_use[:1]))


HARNESS = replace(trusting.HARNESS, save=save)

subject = describe(HARNESS, name="resume/naive_first_call_only", body_bytes=SHORT_BODY_BYTES)
