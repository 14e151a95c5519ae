"""The one fault: the old checkpoint is synced, not the new one that takes its place.

There is a call of fsync before each rename, and a reader who counts calls is content. It makes
durable what is about to be thrown away.
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
    """Replace the checkpoint, after a sync of the one that goes."""
    path = directory / CHECKPOINT_NAME
    temporary = temporary_name(path)
    write_new(temporary, *encode_in_pieces(checkpoint), sync=False)
    if path.exists():
        sync_file(path)
    os.rename(temporary, path)
    sync_directory(directory)


HARNESS = replace(correct.HARNESS, save=save)

subject = describe(HARNESS, name="checkpoint/naive_fsync_wrong_file", body_bytes=SHORT_BODY_BYTES)
