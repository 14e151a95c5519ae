"""The one fault: what to ask a person is kept in the memory of the process that came upon it.

The ledger says that nobody knows whether the page rang; but who resumes asks only what he has met himself. Killed
before a person has answered, the run comes to its end as if nothing were open, and the page that never rang is
forgotten.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from longrun.capstone import correct, subjects
from longrun.rewind.shared_ledger import SharedLedger

if TYPE_CHECKING:
    from longrun.ledger import Record


@dataclass(eq=False)
class Forgetful(SharedLedger):
    """The ledger, which tells of those unknown acts only that this process recorded."""

    met: list[str] = field(default_factory=list)

    def append(self, record: Record) -> None:
        """Add one record, and remember it."""
        super().append(record)
        self.met.append(record.key)

    def unknown(self) -> list[Record]:
        """The acts that are unknown, of those that this process has met."""
        return [record for record in super().unknown() if record.key in self.met]


HARNESS = replace(correct.HARNESS, ledger=Forgetful.of_run)

subject = subjects.asking(HARNESS, desk=correct.HARNESS, name="capstone/naive_waiting_lost")
