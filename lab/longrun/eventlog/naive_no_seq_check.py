"""The one fault: numbers and sums of neighbours are not compared, so a log is replayed across a gap.

Each line verifies itself; that one is missing, or of another place, no line can tell.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from longrun.eventlog.design import DESIGN as CORRECT
from longrun.eventlog.grammar import Grammar
from longrun.eventlog.scan import Reader
from longrun.eventlog.subjects import BLOCKS, bare

if TYPE_CHECKING:
    from longrun.eventlog.record import Draft, Record


class Unnumbered(Grammar):
    """The grammar of what a record says, whatever its number."""

    def check(self, record: Record | Draft) -> None:
        """Check all but the number."""
        super().check(record._replace(seq=self.seq))


def follows(_previous: Record | None, _record: Record) -> str:
    """Anything follows anything."""
    return ""


DESIGN = replace(CORRECT, reader=Reader(follows=follows, grammar=Unnumbered))

subject = bare(DESIGN, name="eventlog/naive_no_seq_check", values=BLOCKS, segments=True)
