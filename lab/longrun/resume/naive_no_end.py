"""The one fault: the end is saved without an end marker, so it looks like any turn that has no open calls.

A finished run that is resumed asks the model again, with the assistant's own last words at the end of the
transcript; the server refuses that.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from longrun.checkpoint import correct
from longrun.inbox import SHORT_BODY_BYTES
from longrun.subjects import describe

if TYPE_CHECKING:
    from pathlib import Path

    from longrun.protocol import Checkpoint


def save(directory: Path, checkpoint: Checkpoint) -> None:
    """Save everything but that it is over."""
    correct.save(directory, replace(checkpoint, status="running", end=None))


HARNESS = replace(correct.HARNESS, save=save)

subject = describe(HARNESS, name="resume/naive_no_end", body_bytes=SHORT_BODY_BYTES)
