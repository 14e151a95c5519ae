"""The one fault: records are appended to the ledger, and not synced.

The checkpoint counts them, and is synced. After a power loss it knows of more records than the ledger has, and
that is refused: a ledger that may lack anything licenses nothing, and the run is stuck. Where no checkpoint had
counted the record yet, a page that was done is called unknown without need. No kill ever shows any of it.
"""

from __future__ import annotations

from dataclasses import replace

from longrun.effects import correct
from longrun.files import write_all
from longrun.inbox import SHORT_BODY_BYTES
from longrun.ledger import Ledger
from longrun.subjects import describe


class UnsyncedLedger(Ledger):
    """A ledger that only the page cache holds."""

    def _write(self, line: bytes) -> None:
        write_all(self._descriptor, line)


HARNESS = replace(correct.HARNESS, ledger=UnsyncedLedger.of_run)

subject = describe(HARNESS, name="effects/naive_unsynced_ledger", persona="hasty", body_bytes=SHORT_BODY_BYTES)
