"""The one fault: the checkpoint is synced when it already has its name, one step too late.

From the rename to the end of the sync the name may lead to bytes that are not there, and the old
checkpoint is gone by then. Everything is durable when the save returns; a power loss inside it is enough.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

from longrun.checkpoint import correct
from longrun.files import sync_directory, sync_file, temporary_name, write_new
from longrun.inbox import SHORT_BODY_BYTES
from longrun.protocol import CHECKPOINT_NAME, encode_in_pieces
from longrun.subjects import describe

if TYPE_CHECKING:
    from pathlib import Path

    from longrun.protocol import Checkpoint


def save(directory: Path, checkpoint: Checkpoint) -> None:
    """Replace the checkpoint, then make it durable."""
    path = directory / CHECKPOINT_NAME
    temporary = temporary_name(path)
    write_new(temporary, *encode_in_pieces(checkpoint), sync=False)
    os.rename(temporary, path)
    sync_file(path)
    sync_directory(directory)


HARNESS = replace(correct.HARNESS, save=save)

subject = describe(HARNESS, name="checkpoint/naive_fsync_after_rename", body_bytes=SHORT_BODY_BYTES)
