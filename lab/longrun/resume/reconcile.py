"""What a resume makes of calls that were open when the process died: the table of protocol v2.

Rows of the table, first match wins; a call whose result stands in the messages is not open and never
comes here::

    evidence                     read-only   idempotent       non-idempotent
    ledger done, same input      -           reuse            reuse
    ledger done, other input     -           conflict         conflict
    ledger gave_up               -           give up          give up
    three attempts, no result    give up     give up          record unknown
    ledger unknown               -           run, same key    look up; no look-up: blocked
    ledger absent                -           -                as not recorded
    started, no record           run         run, same key    record unknown
    not started                  run         run              run

Pure: it reads nothing and does nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING

from longrun.tools import args_digest

if TYPE_CHECKING:
    from longrun.ledger import Record
    from longrun.protocol import Checkpoint, OpenCall
    from longrun.tools import Nature, Tool

ATTEMPT_LIMIT = 3


class Decision(Enum):
    """What to do with an open call."""

    RUN = "run"
    REUSE = "answer with the result in the ledger"
    CONFLICT = "refuse: the act was done with another input"
    GIVE_UP = "answer that it was given up"
    RECORD_UNKNOWN = "record and answer that the outcome is unknown"
    LOOK_UP = "ask the world whether it was done"
    BLOCKED = "refuse until a person has decided"


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What the files tell about one open call.

    ``attempts`` counts the times that it was begun before now; ``record`` is what the ledger knows last
    of its act; ``same_input`` says whether that record was of the same input; ``can_look_up`` whether
    the world tells afterwards if it was done.
    """

    nature: Nature
    attempts: int
    started: bool
    record: Record | None = None
    same_input: bool = True
    can_look_up: bool = False


def decide(evidence: Evidence) -> Decision:
    """The row of the table that fits."""
    outcome = evidence.record.outcome if evidence.record else None
    repeatable = evidence.nature != "non-idempotent"
    if outcome == "done":
        return Decision.REUSE if evidence.same_input else Decision.CONFLICT
    if outcome == "gave_up":
        return Decision.GIVE_UP
    if evidence.attempts >= ATTEMPT_LIMIT and (repeatable or outcome is None):
        return Decision.GIVE_UP if repeatable else Decision.RECORD_UNKNOWN
    if repeatable:
        return Decision.RUN
    if outcome == "unknown":
        return Decision.LOOK_UP if evidence.can_look_up else Decision.BLOCKED
    return Decision.RECORD_UNKNOWN if evidence.started else Decision.RUN


def evidence_of(call: OpenCall, tool: Tool, record: Record | None, *, begun_elsewhere: bool) -> Evidence:
    """What there is to go by for one open call; ``begun_elsewhere`` where another timeline has begun the same act."""
    return Evidence(
        nature=tool.nature,
        attempts=begun_before(call),
        started=call.started or begun_elsewhere,
        record=record,
        same_input=record is None or record.args_digest == args_digest(call.input),
        can_look_up=tool.find is not None,
    )


def begun_before(call: OpenCall) -> int:
    """How often ``call`` was begun before now. A read carries the mark of the coming attempt already."""
    return call.attempts - 1 if call.key is None else call.attempts


def reopen(saved: Checkpoint) -> Checkpoint:
    """The checkpoint with which a resumed process goes on: every open call is kept.

    Reads get the mark of their next attempt here, acts theirs right before they are done; where
    no call is open, a request comes next, and it is counted before it is sent.
    """
    if not saved.pending_tool_use:
        return replace(saved, requests_started=saved.requests_started + 1)
    calls = tuple(
        replace(call, attempts=call.attempts + 1) if call.key is None else call for call in saved.pending_tool_use
    )
    return replace(saved, pending_tool_use=calls)
