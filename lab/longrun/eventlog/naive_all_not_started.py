"""The one fault: a repair knows one outcome. Whatever has no result was not started.

``tool/call`` stands in the log to tell begun from not begun, and is not looked at.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from longrun.eventlog import repair as correct
from longrun.eventlog.conduct import CONDUCT as CORRECT
from longrun.eventlog.events import TurnEnd
from longrun.eventlog.subjects import agent_on_log

if TYPE_CHECKING:
    from collections.abc import Callable

    from longrun.eventlog.events import Event
    from longrun.eventlog.grammar import Grammar, Pending
    from longrun.eventlog.repair import Evidence, Found


def repair(grammar: Grammar, _ask: Callable[[Pending], Found | None], _evidence: Evidence) -> list[Event]:
    """Every call without a result may be made again."""
    if not grammar.open:
        return []
    turn = grammar.turn
    results = [correct.result_of(call, turn, "not-started", None) for call in grammar.pending.values()]
    return [*results, TurnEnd(turn=turn, synthetic=True, reason="interrupted")]


CONDUCT = replace(CORRECT, design=replace(CORRECT.design, repair=repair))

subject = agent_on_log(CONDUCT, name="eventlog/naive_all_not_started", persona="hasty")
