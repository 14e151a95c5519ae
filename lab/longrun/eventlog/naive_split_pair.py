"""The one fault: a compaction sums up so many records, whatever they are.

It may end between a call and its result, and the grammar does not look. The result then answers nothing, and the
server refuses the whole conversation for ever.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from longrun.eventlog.conduct import CONDUCT as CORRECT
from longrun.eventlog.grammar import Grammar
from longrun.eventlog.scan import Reader
from longrun.eventlog.subjects import agent_on_log

if TYPE_CHECKING:
    from longrun.eventlog.record import Draft, Record

KEEP = 3


class Careless(Grammar):
    """The grammar, but for what a summary may sum up."""

    def check(self, record: Record | Draft) -> None:
        """Check anything else."""
        if record.type != "compaction":
            super().check(record)


def stretch(grammar: Grammar, keep: int) -> tuple[int, int] | None:
    """All but the last ones."""
    path = grammar.path(grammar.leaf)
    return (path[0], path[-keep - 1]) if len(path) > keep + 1 else None


CONDUCT = replace(CORRECT, design=replace(CORRECT.design, reader=Reader(grammar=Careless)), stretch=stretch)

subject = agent_on_log(CONDUCT, name="eventlog/naive_split_pair", keep=KEEP)
