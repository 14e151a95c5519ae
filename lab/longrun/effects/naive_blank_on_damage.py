"""The one fault: a ledger that cannot be read is taken for an empty one, so that a broken file stops nobody.

What it knew is gone, and that it is gone is gone as well: the broken file is removed, and the run comes to its end
as if all were well (accepted damage: records that were acked are missing). Damaged right after the page, it costs
the page's result: it rang, the ledger said so, and now a person is asked.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from longrun.effects import correct
from longrun.errors import Damaged
from longrun.inbox import SHORT_BODY_BYTES
from longrun.ledger import LEDGER_NAME, Ledger, open_ledger
from longrun.subjects import describe

if TYPE_CHECKING:
    from pathlib import Path

    from longrun.protocol import Checkpoint


def ledger(directory: Path, saved: Checkpoint | None) -> Ledger:
    """The ledger, or a blank one in its place."""
    try:
        return open_ledger(directory, saved)
    except Damaged:
        path = directory / LEDGER_NAME
        path.unlink(missing_ok=True)
        return Ledger.create(path)


HARNESS = replace(correct.HARNESS, ledger=ledger)

subject = describe(HARNESS, name="effects/naive_blank_on_damage", persona="hasty", body_bytes=SHORT_BODY_BYTES)
