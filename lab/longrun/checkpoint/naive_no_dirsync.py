"""The one fault: the directory is not synced after the rename, so the new name may be lost.

The bytes are durable, but the name still leads to the old checkpoint, or to none. A save that was
acked is gone after a power loss, and with it what it knew of an act that is done.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

from longrun.checkpoint import correct
from longrun.files import temporary_name, write_new
from longrun.inbox import SHORT_BODY_BYTES
from longrun.protocol import CHECKPOINT_NAME, encode_in_pieces
from longrun.subjects import describe

if TYPE_CHECKING:
    from pathlib import Path

    from longrun.protocol import Checkpoint


def save(directory: Path, checkpoint: Checkpoint) -> None:
    """Replace the checkpoint, and leave it to chance when the name changes on disk."""
    path = directory / CHECKPOINT_NAME
    temporary = temporary_name(path)
    write_new(temporary, *encode_in_pieces(checkpoint), sync=True)
    os.rename(temporary, path)


HARNESS = replace(correct.HARNESS, save=save)

subject = describe(HARNESS, name="checkpoint/naive_no_dirsync", body_bytes=SHORT_BODY_BYTES)
