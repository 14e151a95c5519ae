"""The one fault: the checksum is written, and never compared when the checkpoint is read.

What is no JSON, or no transcript, is still refused. But a flipped bit in a text or in a number leaves
good JSON that nobody wrote, and the agent goes on from it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from longrun.checkpoint import correct
from longrun.inbox import SHORT_BODY_BYTES
from longrun.protocol import CHECKPOINT_NAME, from_form, parse_object, require_version
from longrun.subjects import describe

if TYPE_CHECKING:
    from pathlib import Path

    from longrun.protocol import Checkpoint


def load(directory: Path) -> Checkpoint | None:
    """The checkpoint in ``directory``, whatever became of its bytes."""
    path = directory / CHECKPOINT_NAME
    data = correct.read(path)
    if data is None:
        return None
    form = parse_object(data, path)
    require_version(form, path)
    return from_form(form, path)


HARNESS = replace(correct.HARNESS, load=load)

subject = describe(HARNESS, name="checkpoint/naive_no_checksum", body_bytes=SHORT_BODY_BYTES)
