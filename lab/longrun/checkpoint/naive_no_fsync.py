"""The one fault: the new checkpoint is renamed into place before its bytes are on disk.

No kill shows it: the page cache outlives the process. After a power loss the durable new name may lead
to no bytes at all (xfs), to as many zeros (ext4), or to part of them.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

from longrun.checkpoint import correct
from longrun.files import sync_directory, temporary_name, write_new
from longrun.inbox import SHORT_BODY_BYTES
from longrun.protocol import CHECKPOINT_NAME, encode_in_pieces
from longrun.subjects import describe

if TYPE_CHECKING:
    from pathlib import Path

    from longrun.protocol import Checkpoint


def save(directory: Path, checkpoint: Checkpoint) -> None:
    """Replace the checkpoint by one that is not synced."""
    path = directory / CHECKPOINT_NAME
    temporary = temporary_name(path)
    write_new(temporary, *encode_in_pieces(checkpoint), sync=False)
    os.rename(temporary, path)
    sync_directory(directory)


HARNESS = replace(correct.HARNESS, save=save)

subject = describe(HARNESS, name="checkpoint/naive_no_fsync", body_bytes=SHORT_BODY_BYTES)
