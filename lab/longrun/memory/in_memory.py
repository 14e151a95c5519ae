"""A ledger that is nowhere but in the memory of its process: what the naive modules of lesson 1 have."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from longrun.ledger import Record
    from longrun.protocol import Checkpoint


@dataclass(eq=False)
class MemoryLedger:
    """Knows all acts of this process, and after its death none."""

    durable: bool = False
    records: list[Record] = field(default_factory=list)

    @staticmethod
    def open(_directory: Path, _saved: Checkpoint | None) -> MemoryLedger:
        """A new one, whatever lies in the directory."""
        return MemoryLedger()

    def append(self, record: Record) -> None:
        """Add one record, for as long as this process lives."""
        self.records.append(record)

    def latest(self, key: str) -> Record | None:
        """What is known last of this act."""
        return next((record for record in reversed(self.records) if record.key == key), None)

    def unknown(self) -> list[Record]:
        """None: whoever died knows nothing, and whoever lives knows how it ended."""
        return []

    def close(self) -> None:
        """Nothing is held."""
