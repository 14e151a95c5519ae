"""The one fault: a snapshot is taken at its word. That it is of this log, and of no other, nobody looks.

Two sessions that began alike lie alike on the disk. With the snapshot of the other one this session goes on from the
other's leaf, and says so to the model.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from longrun.eventlog.design import DESIGN as CORRECT
from longrun.eventlog.scan import Reader
from longrun.eventlog.subjects import bare

if TYPE_CHECKING:
    from pathlib import Path

    from longrun.eventlog.snapshot import Snapshot


def bound(_directory: Path, _snapshot: Snapshot) -> None:
    """It lies beside the log, so it is of the log."""


DESIGN = replace(CORRECT, reader=Reader(bound=bound))

subject = bare(DESIGN, name="eventlog/naive_snapshot_first", snapshots=True)
