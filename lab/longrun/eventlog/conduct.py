"""How an agent behaves towards its log, in pieces that a naive agent exchanges; each is correct by default."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from longrun.eventlog.design import DESIGN
from longrun.eventlog.grammar import LAST_RESULT, RESTS, RESULT
from longrun.eventlog.project import effects
from longrun.model import require_complete

if TYPE_CHECKING:
    from collections.abc import Callable

    from longrun.eventlog.design import Design
    from longrun.eventlog.grammar import Grammar
    from longrun.eventlog.log import EventLog
    from longrun.eventlog.project import Act


def promise_first(promise: Callable[[], None], body: Callable[[], str]) -> str:
    """Run the body of a tool once its ``tool/call`` is promised, and not before."""
    promise()
    return body()


def known(log: EventLog, key: str) -> Act | None:
    """What became last of the act with this key, on any branch."""
    return next((act for act in reversed(effects(log.records)) if act.key == key), None)


def stretch(grammar: Grammar, keep: int) -> tuple[int, int] | None:
    """The stretch of the branch to compact so that about ``keep`` surface records stay: no call loses its result."""
    path = grammar.path(grammar.leaf)
    ends = [seq for seq in path[: max(0, len(path) - keep)] if grammar.surface[seq][1] in RESTS]
    return (path[0], ends[-1]) if len(ends) > 1 and grammar.surface[path[0]][1] not in (RESULT, LAST_RESULT) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Conduct:
    """The pieces.

    * ``design`` is the log's own.
    * ``accept(response)`` raises IncompleteResponse unless the answer is whole.
    * ``act(promise, body)`` runs the body of a tool whose ``tool/call`` is queued, and promises that.
    * ``known(log, key)`` is what is known of an act that was named before.
    * ``stretch(grammar, keep)`` chooses what a compaction sums up.
    """

    design: Design = DESIGN
    accept: Callable[[dict[str, Any]], dict[str, Any]] = require_complete
    act: Callable[[Callable[[], None], Callable[[], str]], str] = promise_first
    known: Callable[[EventLog, str], Act | None] = known
    stretch: Callable[[Grammar, int], tuple[int, int] | None] = stretch


CONDUCT = Conduct()
