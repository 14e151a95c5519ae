"""Checkpoints that no kill and no power loss breaks: the old one or the new one, never a mix.

The new file gets its bytes under a name of its own, is synced, takes the place of the old one by
rename, and the directory is synced last. Only then may anyone be told that it is saved.
"""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

from longrun import v1
from longrun.files import sync_directory, temporary_name, write_new
from longrun.harness import Harness
from longrun.protocol import CHECKPOINT_NAME, decode, encode_in_pieces
from longrun.subjects import describe

if TYPE_CHECKING:
    from pathlib import Path

    from longrun.protocol import Checkpoint


def save(directory: Path, checkpoint: Checkpoint) -> None:
    """Replace the checkpoint in ``directory``; it is durable when this returns.

    Raises OSError, and then the old checkpoint still stands.
    """
    path = directory / CHECKPOINT_NAME
    temporary = temporary_name(path)
    try:
        write_new(temporary, *encode_in_pieces(checkpoint), sync=True)  # a durable name must not lead to absent data
        os.rename(temporary, path)
    except OSError:
        with contextlib.suppress(OSError):  # the first failure is the one to report
            os.unlink(temporary)
        raise
    sync_directory(directory)  # a rename is durable only with its directory


def load(directory: Path) -> Checkpoint | None:
    """The checkpoint in ``directory``, None where there is none. Raises Damaged or UnsupportedVersion.

    One of version 1 is read as what it will be once it is converted.
    """
    if (older := v1.read(directory)) is not None:
        return older.checkpoint
    path = directory / CHECKPOINT_NAME
    data = read(path)
    return None if data is None else decode(data, path)


def read(path: Path) -> bytes | None:
    """The bytes of a checkpoint, None where there is none. A file that is there and cannot be read raises OSError."""
    try:
        with open(path, "rb", buffering=0) as file:
            return file.readall()
    except FileNotFoundError:
        return None


HARNESS = Harness(save=save, load=load)

subject = describe(HARNESS, name="checkpoint/correct")
subject_hasty = describe(HARNESS, name="checkpoint/correct, hasty model", persona="hasty")
