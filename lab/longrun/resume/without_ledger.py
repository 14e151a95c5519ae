"""Resume without a mark and without a ledger: all that lesson 3 has, and not yet what lesson 4 is about.

An open call may have been done or not, from the save that names it (A) to the save that answers it (B): that is the
window of protocol v1. Every act in it is answered "outcome unknown", which is honest, since no file is
written in between. What becomes of it then is up to the model. ``careful`` looks a reply up, and leaves a page to a
person: nothing is done twice. ``hasty`` names both again, and nothing here knows that it ever did.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from longrun.checkpoint import correct
from longrun.inbox import SHORT_BODY_BYTES
from longrun.ledger import record_of
from longrun.messages import blocks, result_text, tool_uses
from longrun.protocol import OpenCall
from longrun.resume import reconcile
from longrun.subjects import describe
from longrun.tools import TOOLS, act_key

if TYPE_CHECKING:
    from pathlib import Path

    from longrun.ledger import Record
    from longrun.protocol import Checkpoint


@dataclass(eq=False)
class NoLedger:
    """Remembers no act. That a person must decide about some, it reads out of the transcript that is resumed."""

    durable: ClassVar[bool] = False
    records: ClassVar[tuple[Record, ...]] = ()
    saved: Checkpoint | None = None

    @staticmethod
    def open(_directory: Path, saved: Checkpoint | None) -> NoLedger:
        """For a new run, or for the one of ``saved``."""
        return NoLedger(saved)

    def append(self, record: Record) -> None:
        """Nothing is kept."""

    def latest(self, _key: str) -> Record | None:
        """Nothing is known."""
        return None
