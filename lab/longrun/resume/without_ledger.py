"""Resume without a mark and without a ledger: all that lesson 3 has, and what lesson 4 begins with.

An open call may have been done or not, from the save that names it (A) to the save that answers it (B): the window of
protocol v1. Every act in it is answered "outcome unknown", which is honest, since no file is written in
between. What becomes of it then is up to the model. ``careful`` looks a reply up, and leaves a page to a person:
nothing is done twice. ``hasty`` names both again, and nothing here knows that they were ever named.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar

from longrun.checkpoint import correct
from longrun.inbox import SHORT_BODY_BYTES
from longrun.ledger import record_of
from longrun.loop import UNKNOWN_TEXT
from longrun.messages import blocks, result_text, tool_uses
from longrun.protocol import OpenCall
from longrun.resume import reconcile
from longrun.subjects import describe
from longrun.tools import TOOLS, act_key

if TYPE_CHECKING:
    from pathlib import Path

    from longrun.ledger import Record
    from longrun.messages import Block
    from longrun.protocol import Checkpoint


@dataclass(eq=False)
class NoLedger:
    """Remembers no act. Which pages a person must decide about, it takes from the answers in the transcript."""

    durable: ClassVar[bool] = False
    records: ClassVar[tuple[Record, ...]] = ()
    _undecided: dict[str, Record] = field(default_factory=dict)

    @staticmethod
    def open(_directory: Path, saved: Checkpoint | None) -> NoLedger:
        """For a new run, or for that of ``saved``."""
        ledger = NoLedger()
        messages = saved.messages if saved else ()
        told = {block["tool_use_id"] for message in messages for block in blocks(message) if _is_unknown(block)}
        for call in (call for message in messages for call in tool_uses(message) if call["id"] in told):
            assert saved is not None
            key = act_key(saved.run_id, TOOLS[call["name"]], call)
            open_call = OpenCall(id=call["id"], name=call["name"], input=call["input"], key=key)
            ledger.append(record_of(saved, open_call, "unknown", UNKNOWN_TEXT))
        return ledger

    def append(self, record: Record) -> None:
        """Keep nothing but that nobody knows whether it was done, where the world cannot be asked either."""
        if record.outcome == "unknown" and TOOLS[record.tool].find is None:
            self._undecided[record.key] = record

    def latest(self, _key: str) -> Record | None:
        """Nothing is known of any act."""
        return None

    def unknown(self) -> list[Record]:
        """The acts about which a person must decide."""
        return list(self._undecided.values())

    def close(self) -> None:
        """Nothing is held."""


def _is_unknown(block: Block) -> bool:
    return block["type"] == "tool_result" and result_text(block) == UNKNOWN_TEXT


def reopen(saved: Checkpoint) -> Checkpoint:
    """Nothing says which of the open calls were begun: all of them may have been."""
    kept = reconcile.reopen(saved)
    return replace(kept, pending_tool_use=tuple(replace(call, started=True) for call in kept.pending_tool_use))


HARNESS = replace(correct.HARNESS, save_points=frozenset({"R", "A", "B", "E"}), reopen=reopen, ledger=NoLedger.open)

subject = describe(HARNESS, name="resume/without_ledger", body_bytes=SHORT_BODY_BYTES)
subject_hasty = describe(
    HARNESS, name="resume/without_ledger, hasty model", persona="hasty", body_bytes=SHORT_BODY_BYTES
)
