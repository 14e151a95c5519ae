"""The one fault: the save that marks an act (S) is not made durable: its directory is left to the next save to sync.

A kill leaves the mark in the page cache, where the next process reads it. A power loss takes it away, and the record
with it, while the mail is out: what was begun looks as if it were not, and is done again. The bytes of the save
are synced: without that a name may lead to none at all, which is another fault, and lesson 2 has it.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

from longrun.effects import correct
from longrun.files import temporary_name, write_new
from longrun.inbox import SHORT_BODY_BYTES
from longrun.protocol import CHECKPOINT_NAME, encode_in_pieces
from longrun.subjects import describe

if TYPE_CHECKING:
    from pathlib import Path

    from longrun.protocol import Checkpoint


def save(directory: Path, checkpoint: Checkpoint) -> None:
    """Replace the checkpoint; durably, unless it says of an act that it was begun."""
    if not any(call.started and call.key is not None for call in checkpoint.pending_tool_use):
        correct.HARNESS.save(directory, checkpoint)
        return
    path = directory / CHECKPOINT_NAME
    temporary = temporary_name(path)
    write_new(temporary, *encode_in_pieces(checkpoint), sync=True)
    os.rename(temporary, path)


HARNESS = replace(correct.HARNESS, save=save)

subject = describe(HARNESS, name="effects/naive_lazy_mark", persona="hasty", body_bytes=SHORT_BODY_BYTES)
