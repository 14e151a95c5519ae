"""The one fault: a checkpoint that cannot be read counts as none, and the run begins anew.

The old files are put aside, under other names, so nothing is destroyed. But nobody is told, and what
was done outside is done a second time.
"""

from __future__ import annotations

import os
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
    """The checkpoint in ``directory``, None where there is none to be read."""
    try:
        return correct.load(directory)
    except (OSError, Damaged, UnsupportedVersion):
        for name in (CHECKPOINT_NAME, LEDGER_NAME):
            if (directory / name).exists():
                os.rename(directory / name, directory / f"{name}.unreadable")
        return None


HARNESS = replace(correct.HARNESS, load=load)

subject = describe(HARNESS, name="checkpoint/naive_none_on_error", body_bytes=SHORT_BODY_BYTES)
