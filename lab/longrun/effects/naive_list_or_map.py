"""The one fault: one part of the program takes the ledger for a map from act to record, another for a list.

In the process that wrote them, acts are found by name. A ledger that is read back is a list, in which no name is
ever found: whatever is in the file, a resume takes it for missing, and calls an act unknown that it could tell of.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from longrun.effects import correct
from longrun.inbox import SHORT_BODY_BYTES
from longrun.ledger import Ledger
from longrun.subjects import describe

if TYPE_CHECKING:
    from longrun.ledger import Record


@dataclass(eq=False)
class ListOrMap(Ledger):
    """A map of what this process wrote, beside a list of what it read."""

    _written: dict[str, Record] = field(default_factory=dict)

    def append(self, record: Record) -> None:
        """Add one record, to be found by the name of its act."""
        super().append(record)
        self._written[record.key] = record

    def latest(self, key: str) -> Record | None:
        """What is known last of this act: no name is in a list."""
        return self._written.get(key)


HARNESS = replace(correct.HARNESS, ledger=ListOrMap.of_run)

subject = describe(HARNESS, name="effects/naive_list_or_map", persona="hasty", body_bytes=SHORT_BODY_BYTES)
