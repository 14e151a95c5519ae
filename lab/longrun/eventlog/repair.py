"""What an opening adds to a log whose turn was cut off: facts, and never fewer than were there.

Each call without a result gets one, in order, and the turn its end. What the result says follows from the log and from
the world's answer, so a crash in the middle of a repair changes nothing: the next opening adds what is still missing.

    evidence                                outcome
    no tool/call, or one never promised     not-started: may be made again
    tool/call, policy read                  unknown, and may be repeated
    tool/call, keyed, the world has it      done, with the world's id
    tool/call, keyed, the world says no     not-started
    tool/call, keyed, idempotent            unknown, and may be repeated
    anything else                           unknown: look, or ask; do not repeat blindly

"Not started" can be proven only because ``tool/call`` is promised before the body runs: a call beyond the mark was
written, and its process died before it could begin. Where the mark cannot be read, that is not known; and where bytes
were cut off then, they may have held a ``tool/call``, so that nothing is known to be not started.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from longrun.eventlog.events import ToolResult, TurnEnd

if TYPE_CHECKING:
    from collections.abc import Callable

    from longrun.eventlog.events import Event, Outcome
    from longrun.eventlog.grammar import Grammar, Pending

NOT_STARTED_TEXT = "failed: the process died before this was started, so it may be done now"
UNKNOWN_TEXT = "outcome unknown: the process died while this was being done, so it may or may not have happened"
REPEAT_TEXT = "failed: the process died while this was being done; nothing is harmed if it is done again"


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What the world reliably knows of a call: done, with this text and id; or not done.

    With ``repeat`` it cannot tell either, and need not: done twice is as done once.
    """

    done: bool
    repeat: bool = False
    content: str = ""
    external_id: str | None = None


def cannot_tell(_call: Pending) -> Found | None:
    """A world that answers nothing."""
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What a reader knows beside the records: the highest promise (None: the mark cannot be read), and cut bytes."""

    promised: int | None
    was_cut: bool = False


def outcome_of(
    call: Pending, ask: Callable[[Pending], Found | None], evidence: Evidence
) -> tuple[Outcome, Found | None]:
    """The outcome of a call without a result, and the world's answer where it was asked."""
    if call.called is None:
        return ("unknown" if evidence.promised is None and evidence.was_cut else "not-started"), None
    if evidence.promised is not None and call.called > evidence.promised:
        return "not-started", None
    answer = ask(call) if call.policy == "keyed" else None
    if answer is None or answer.repeat:
        return "unknown", answer
    return ("done" if answer.done else "not-started"), answer


def result_of(call: Pending, turn: int, outcome: Outcome, found: Found | None) -> ToolResult:
    """The record that says so. What the world has told is no invention: it is not synthetic."""
    unknown = REPEAT_TEXT if call.policy == "read" or (found and found.repeat) else UNKNOWN_TEXT
    text = {"done": found.content if found else "", "not-started": NOT_STARTED_TEXT}.get(outcome, unknown)
    done = outcome == "done"
    return ToolResult(
        turn=turn,
        step=call.step,
        call_id=call.call_id,
        content=text,
        is_error=not done,
        synthetic=not done,
        outcome=outcome,
        call_seq=call.called,
        external_id=found.external_id if found else None,
    )


def repair(grammar: Grammar, ask: Callable[[Pending], Found | None], evidence: Evidence) -> list[Event]:
    """The events that close an open turn; none where no turn is open."""
    if not grammar.open:
        return []
    events: list[Event] = []
    for call in grammar.pending.values():
        outcome, found = outcome_of(call, ask, evidence)
        events.append(result_of(call, grammar.turn, outcome, found))
    return [*events, TurnEnd(turn=grammar.turn, synthetic=True, reason="interrupted")]
