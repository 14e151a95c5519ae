"""The one fault: the checkpoint is overwritten in place, so a kill leaves it empty or half.

Opening with ``wb`` empties the only copy before the first new byte is there. The syncs are all
made; they cannot help, since the file that they make durable is the damaged one.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

from longrun.checkpoint import correct
from longrun.files import sync_directory
from longrun.inbox import SHORT_BODY_BYTES
from longrun.protocol import CHECKPOINT_NAME, encode
from longrun.subjects import describe

if TYPE_CHECKING:
    from pathlib import Path

    from longrun.protocol import Checkpoint


def save(directory: Path, checkpoint: Checkpoint) -> None:
    """Overwrite the checkpoint where it lies."""
    with open(directory / CHECKPOINT_NAME, "wb") as file:
        file.write(encode(checkpoint))
        file.flush()
        os.fsync(file.fileno())
    sync_directory(directory)


HARNESS = replace(correct.HARNESS, save=save)

subject = describe(HARNESS, name="checkpoint/naive_in_place", body_bytes=SHORT_BODY_BYTES)
