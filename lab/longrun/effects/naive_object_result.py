"""The one fault: the ledger keeps a result as an object and gives it back as one, though the model was given a text.

Uncrashed nobody sees it. A resume that finds the act in the ledger hands the object to the server as the content of
a ``tool_result``; the server takes a text or a list of blocks there, answers 400, and does so at each resume.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from longrun.effects import correct
from longrun.inbox import SHORT_BODY_BYTES
from longrun.ledger import Ledger
from longrun.messages import canonical, parse_strict
from longrun.resume import trusting
from longrun.subjects import describe

if TYPE_CHECKING:
    from longrun.ledger import Record


class ObjectLedger(Ledger):
    """Results as objects, since "more can be kept in them later"."""

    def append(self, record: Record) -> None:
        """Add a record with its result as an object."""
        super().append(replace(record, result=canonical({"text": record.result})))

    def latest(self, key: str) -> Record | None:
        """What is known last of this act; its result is what was kept."""
        record = super().latest(key)
        return replace(record, result=parse_strict(record.result)) if record else None


HARNESS = replace(correct.HARNESS, load=trusting.load, ledger=ObjectLedger.of_run)

subject = describe(HARNESS, name="effects/naive_object_result", persona="hasty", body_bytes=SHORT_BODY_BYTES)
