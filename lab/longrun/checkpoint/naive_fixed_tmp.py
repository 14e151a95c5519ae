"""The one fault: every save writes its temporary file under the same name.

One process alone never shows it: what a killed one leaves is emptied and filled anew. Two of them, a worker that is
slow and the one that took its place, write into one file, and either may rename what the other has half written.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

from longrun.checkpoint import correct
from longrun.files import TEMPORARY_SUFFIX, sync_directory, write_all
from longrun.inbox import SHORT_BODY_BYTES
from longrun.protocol import CHECKPOINT_NAME, encode
from longrun.subjects import describe

if TYPE_CHECKING:
    from pathlib import Path

    from longrun.protocol import Checkpoint


def save(directory: Path, checkpoint: Checkpoint) -> None:
    """Replace the checkpoint, by way of a file that every other owner uses too."""
    path = directory / CHECKPOINT_NAME
    temporary = f"{path}{TEMPORARY_SUFFIX}"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
    try:
        write_all(descriptor, encode(checkpoint))
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    os.rename(temporary, path)
    sync_directory(directory)


HARNESS = replace(correct.HARNESS, save=save)

subject = describe(HARNESS, name="checkpoint/naive_fixed_tmp", body_bytes=SHORT_BODY_BYTES)
