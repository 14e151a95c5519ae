"""The one fault: an fsync that failed is called again, and the 0 of the second call is believed.

The first call has given the pages up: they are clean in the cache, nobody will write them again, and the second
call finds nothing to do. The checkpoint can be read until the power goes.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from longrun.checkpoint import correct
from longrun.files import sync_directory, sync_file, temporary_name, write_new
from longrun.inbox import SHORT_BODY_BYTES
from longrun.protocol import CHECKPOINT_NAME, encode_in_pieces
from longrun.subjects import describe

if TYPE_CHECKING:
    from longrun.protocol import Checkpoint


def save(directory: Path, checkpoint: Checkpoint) -> None:
    """Replace the checkpoint, trying its sync once more."""
    path = directory / CHECKPOINT_NAME
    temporary = temporary_name(path)
    write_new(temporary, *encode_in_pieces(checkpoint), sync=False)
    try:
        sync_file(Path(temporary))
    except OSError:
        sync_file(Path(temporary))
    os.rename(temporary, path)
    sync_directory(directory)


HARNESS = replace(correct.HARNESS, save=save)

subject = describe(HARNESS, name="checkpoint/naive_retry_fsync", body_bytes=SHORT_BODY_BYTES)
