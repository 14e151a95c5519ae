"""The one fault: a save that finds no room says nothing, so the run goes on as if it were saved.

The old checkpoint stays, whole and outdated, while acts are done that it does not know of. It looks
kind to the user; it takes from a resume the only thing that it goes by.
"""

from __future__ import annotations

import errno
from dataclasses import replace
from typing import TYPE_CHECKING

from longrun.checkpoint import correct
from longrun.inbox import SHORT_BODY_BYTES
from longrun.subjects import describe

if TYPE_CHECKING:
    from pathlib import Path

    from longrun.protocol import Checkpoint


def save(directory: Path, checkpoint: Checkpoint) -> None:
    """Replace the checkpoint, if there is room."""
    try:
        correct.save(directory, checkpoint)
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise


HARNESS = replace(correct.HARNESS, save=save)

subject = describe(HARNESS, name="checkpoint/naive_swallow_enospc", body_bytes=SHORT_BODY_BYTES)
