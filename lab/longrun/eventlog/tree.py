"""Branches of one session in one log, and forks of it as sessions of their own.

A branch is no copy: ``branch/move`` says from where what comes next goes on. The leaf is the last surface record or a
later move, so it survives every restart. What was said on the branch that was left stays in the log, and what was done
there stays done.

A fork copies one branch into a new session, all of it there at once or not at all. It names the record of the other
session at which it parted, and takes along what is known of acts that have a key: also in the fork no letter is sent
twice.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from longrun.errors import UsageError
from longrun.eventlog import project
from longrun.eventlog.events import EVENTS, BranchMove, TurnEnd, TurnStart
from longrun.eventlog.opening import Opening, open_log

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from longrun.eventlog.events import Event
    from longrun.eventlog.grammar import Grammar
    from longrun.eventlog.log import EventLog
    from longrun.eventlog.record import Record

FIRST_COPIED = 2
"""Behind ``session/start`` and ``writer/start``."""


def targets(grammar: Grammar) -> list[int]:
    """The records from which a branch may go on, beside the very beginning."""
    return [seq for seq in grammar.surface if grammar.may_rest(seq)]


def branch(log: EventLog, to_seq: int | None, *, summary: str | None = None) -> int:
    """Go on from another record, None for the beginning; promised when this returns. Returns the seq of the move.

    Raises InvalidEvent while a turn is open, and for a record at which a call is without its result.
    """
    ticket = log.append(BranchMove(to_seq=to_seq, summary=summary))
    log.barrier()
    return ticket.seq


def fork(
    records: Sequence[Record], at: int | None, root: Path, session_id: str, opening: Opening | None = None
) -> EventLog:
    """A new session whose branch is that of ``records`` up to the surface record ``at``; opened.

    Asked for once more, as after a crash, it is the fork that is there.
    Raises UsageError where the new session is there already, or ``at`` is no place to part.
    """
    how = opening or Opening()
    origin = records[0].data
    parted = records[at] if at is not None else records[0]
    parent = {
        "session_id": origin["session_id"],
        "seq": parted.seq,
        "sum": parted.sum,
        "scope": project.scope(records),
        "acts": [_told(act) for act in project.effects(records) if act.key and act.outcome in ("done", "unknown")],
    }
    log = open_log(root, session_id, replace(how, parent=parent, seed=tuple(_copied(records, at))))
    if log.records[0].data.get("parent") != parent:
        log.close()
        text = f"{log.directory} holds a session already: fork into another one"
        raise UsageError(text)
    return log


def _told(act: project.Act) -> dict[str, Any]:
    return {"name": act.name, "input": act.input, "key": act.key, "policy": act.policy, "outcome": act.outcome} | {
        "content": act.content,
        "external_id": act.external_id,
    }


def _copied(records: Sequence[Record], at: int | None) -> list[Event]:
    """The facts of one branch as events of a new log: renumbered, each turn with its start and end."""
    copier = _Copier(records)
    for record in project.path_to(records, at):
        copier.take(record)
    copier.end_turn()
    return copier.events


class _Copier:
    def __init__(self, records: Sequence[Record]) -> None:
        self._records = records
        self.events: list[Event] = []
        self._seqs: dict[int, int] = {}
        self._turn = 0
        self._source_turn: int | None = None
        self._header: int | None = None

    def take(self, record: Record) -> int:
        """One surface record, with the facts that it needs before it."""
        data = dict(record.data)
        if record.type == "compaction":
            self.end_turn()
            data |= {name: self._seqs[data[name]] for name in ("from_seq", "to_seq")}
            return self._add(record, data)
        if data["turn"] != self._source_turn:
            self.end_turn()
            self._source_turn, self._turn = data["turn"], self._turn + 1
            self.events.append(TurnStart(turn=self._turn))
        data["turn"] = self._turn
        if record.type == "assistant/message":
            self._request_before(record)
        if data.get("call_seq") is not None:
            called = self._records[data["call_seq"]]
            data["call_seq"] = self._add(called, {**called.data, "turn": self._turn})
        return self._add(record, data)

    def _request_before(self, record: Record) -> None:
        """The header, where it is another one by now, and the ``model/call`` of an answer."""
        called = next(
            self._records[seq] for seq in range(record.seq - 1, -1, -1) if self._records[seq].type == "model/call"
        )
        header = self._records[called.data["header_seq"]]
        if header.seq not in self._seqs or self._header != header.seq:
            self._add(header, header.data)
            self._header = header.seq
        self._add(called, {**called.data, "turn": self._turn, "header_seq": self._seqs[header.seq]})

    def _add(self, record: Record, data: dict[str, Any]) -> int:
        self.events.append(EVENTS[record.type](**data))
        self._seqs[record.seq] = FIRST_COPIED + len(self.events) - 1
        return self._seqs[record.seq]

    def end_turn(self) -> None:
        """Close the turn that is being copied."""
        if self._source_turn is not None:
            self.events.append(TurnEnd(turn=self._turn, synthetic=True, reason="completed"))
            self._source_turn = None
