"""The one fault: what cannot be read is cleared away, and the run starts afresh, as if nothing had been done.

The damaged files were the only evidence of what was done. With them goes every answer that nobody should
ask for twice, and the customers get their mails again.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from longrun.checkpoint import correct
from longrun.errors import Damaged, UnsupportedVersion
from longrun.inbox import SHORT_BODY_BYTES
from longrun.ledger import LEDGER_NAME
from longrun.protocol import CHECKPOINT_NAME
from longrun.subjects import describe

if TYPE_CHECKING:
    from pathlib import Path

    from longrun.protocol import Checkpoint


def load(directory: Path) -> Checkpoint | None:
    """The checkpoint, or a clean directory."""
    try:
        return correct.load(directory)
    except (Damaged, UnsupportedVersion):
        for name in (CHECKPOINT_NAME, LEDGER_NAME):
            (directory / name).unlink(missing_ok=True)
        return None


HARNESS = replace(correct.HARNESS, load=load)

subject = describe(HARNESS, name="resume/naive_reset_on_error", body_bytes=SHORT_BODY_BYTES)
