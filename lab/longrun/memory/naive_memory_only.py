"""The one fault: transcript, counters, open calls and ledger live in memory only, nothing is ever saved.

A process killed after its first mail leaves no trace of having lived. The rerun starts from the task,
mails everyone again, pages again, and opens a second case, since a new run makes new keys.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from longrun.harness import Harness
from longrun.inbox import SHORT_BODY_BYTES
from longrun.memory.in_memory import MemoryLedger
from longrun.subjects import describe

if TYPE_CHECKING:
    from pathlib import Path

    from longrun.protocol import Checkpoint


def save(_directory: Path, _checkpoint: Checkpoint) -> None:
    """Nothing is saved."""


def load(_directory: Path) -> Checkpoint | None:
    """So there is nothing to go on with."""
    return None


HARNESS = Harness(save=save, load=load, save_points=frozenset(), ledger=MemoryLedger.open)

subject = describe(HARNESS, name="memory/naive_memory_only", body_bytes=SHORT_BODY_BYTES)
