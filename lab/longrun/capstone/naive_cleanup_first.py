"""The one fault: at the end the old files are cleared away before the end is saved, so that it stands in a clean place.

Killed in between, nothing is left: no point, no ledger. The next process takes that for the first day, and does
everything again. Killed while some of it is still there, the next one finds a run that has lost a part, and refuses.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from longrun.capstone import correct
from longrun.files import write_new
from longrun.inbox import SHORT_BODY_BYTES
from longrun.ledger import LEDGER_NAME
from longrun.rewind import points
from longrun.subjects import describe

if TYPE_CHECKING:
    from pathlib import Path

    from longrun.protocol import Checkpoint


def save(directory: Path, checkpoint: Checkpoint) -> None:
    """Save; the end into a cleared directory, with the ledger written anew."""
    if checkpoint.finished:
        ledger = (directory / LEDGER_NAME).read_bytes()
        (directory / LEDGER_NAME).unlink()
        for seq in points.numbers(directory):
            points.path_of(directory, seq).unlink()
        write_new(str(directory / LEDGER_NAME), ledger, sync=True)
    correct.HARNESS.save(directory, checkpoint)


HARNESS = replace(correct.HARNESS, save=save)

subject = describe(HARNESS, name="capstone/naive_cleanup_first", body_bytes=SHORT_BODY_BYTES)
