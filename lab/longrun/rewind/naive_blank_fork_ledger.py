"""The one fault: a fork has a ledger of its own, and it begins empty.

The world is one, however many lines are in it. The fork knows of nothing that the run has done, and does it again.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from longrun.ledger import LEDGER_NAME, Ledger
from longrun.rewind import correct, points
from longrun.rewind.shared_ledger import open_shared
from longrun.rewind.subjects import describe

if TYPE_CHECKING:
    from pathlib import Path

    from longrun.ledger import Acts
    from longrun.protocol import Checkpoint


def ledger(directory: Path, saved: Checkpoint | None) -> Acts:
    """The ledger of this line: that of the run is for the run alone."""
    if not points.is_fork(directory) or saved is None:
        return open_shared(directory, saved)
    path = directory / LEDGER_NAME
    if not path.exists():
        return Ledger.create(path)
    begun = points.numbers(directory)  # none yet: what the run's head has counted is not of this file
    return Ledger.open(path, seen=saved.ledger_seen if begun else 0)


WAYS = replace(correct.WAYS, harness=replace(correct.HARNESS, ledger=ledger))

subject = describe(WAYS, name="rewind/naive_blank_fork_ledger")
