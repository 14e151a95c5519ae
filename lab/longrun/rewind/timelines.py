"""Rewind and fork: a copy of an older point becomes a new point, and the run goes on from there.

A rewind restores what was decided, neither the world nor the money: the ledger stays whole, and the counters are
carried forward from the head that is left. The copy has the next free number, so it is the newest point, and the
abandoned ones stay as they are. What was begun in the abandoned turn and not recorded is recorded as unknown first:
in the new line nothing else would tell that it may have happened.

A fork is a directory of its own, ``forks/<name>``, with its own points, so its own head, and its own lease; both lines
can be worked on at the same time. The ledger is the run's. Its first point is the copy of the target, numbered on
from it: a number names one point of a directory, with the name of its timeline one of the run.

Each is one step to a kill: before the copy has its name nothing has happened, and it can be asked for again.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from longrun import files
from longrun.errors import HistoryExists, UsageError
from longrun.ledger import Record
from longrun.loop import UNKNOWN_TEXT
from longrun.rewind import points
from longrun.tools import args_digest

if TYPE_CHECKING:
    from pathlib import Path

    from longrun.harness import Harness
    from longrun.ledger import Acts
    from longrun.protocol import Checkpoint, OpenCall

_FORK = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """Where to go back to: the point of that number, or the end of that turn on the line of the head."""

    seq: int | None = None
    turn: int | None = None

    def __post_init__(self) -> None:
        if (self.seq is None) == (self.turn is None):
            text = "say either which point to go back to, or after which turn"
            raise UsageError(text)


class Carry(Protocol):
    """How a copy of ``target`` gets the counters of the ``head`` that is left."""

    def __call__(self, target: Checkpoint, head: Checkpoint) -> Checkpoint:
        """The copy."""


def carried(target: Checkpoint, head: Checkpoint) -> Checkpoint:
    """A copy of the target that knows what was paid until now."""
    return replace(
        target,
        requests_started=head.requests_started,
        requests_saved=head.requests_saved,
        usage=head.usage,
        tokens_used=head.tokens_used,
    )


def rewind(harness: Harness, directory: Path, goal: Goal, *, carry: Carry = carried) -> Checkpoint:
    """Make a copy of an older point the head of ``directory``, and return it. The run then goes on by resuming.

    Raises UsageError where there is no such point, LeaseHeld while a process works there, Damaged.
    """
    with harness.lease(directory) as lease:
        head = _head(harness, directory)
        target = find(directory, head, goal)
        acts = harness.ledger(directory, head)
        try:
            harness.clear(directory)
            admit_unknown(harness, acts, head)
            copy = replace(
                carry(target, head),
                seq=head.seq + 1,
                parent=target.seq,
                timeline=f"{_base(directory)}@{head.seq + 1}",
                writer_epoch=head.writer_epoch + 1,
                ledger_seen=len(acts.records),
            )
            lease.require(head.writer_epoch)
            harness.save(directory, copy)
        finally:
            acts.close()
    return copy


def fork(harness: Harness, directory: Path, name: str, goal: Goal, *, carry: Carry = carried) -> Path:
    """Begin a line of its own at a point of ``directory``, and return its directory, to be resumed like any other.

    ``directory`` may be at work meanwhile. Raises UsageError for a bad name and where there is no such point,
    HistoryExists where there is a fork of that name, Damaged.
    """
    if not _FORK.fullmatch(name):
        text = f"{name!r} is no name for a fork: take letters, digits, - and _"
        raise UsageError(text)
    head = _head(harness, directory)
    target = find(directory, head, goal)
    place = place_of(directory, name)
    for folder in (place.parent, place):
        points.make_folder(folder)
        files.sync_directory(folder.parent)
    with harness.lease(place):
        if points.numbers(place):
            text = f"there is a fork {name!r} already, in {place}: resume it, or take another name"
            raise HistoryExists(text)
        harness.clear(place)
        files.sync_directory(directory / points.POINTS_NAME)  # a live writer may have linked the target just now
        acts = harness.ledger(place, head)
        try:
            copy = replace(
                carry(target, head),
                seq=target.seq + 1,
                parent=target.seq,
                timeline=name,
                ledger_seen=len(acts.records),
            )
            harness.save(place, copy)
        finally:
            acts.close()
    return place


def place_of(directory: Path, name: str) -> Path:
    """The directory of the fork ``name`` of the run in ``directory``."""
    return points.run_of(directory) / points.FORKS_NAME / name


def find(directory: Path, head: Checkpoint, goal: Goal) -> Checkpoint:
    """The point that is meant. Of a turn it is the newest on the head's own line with no call open, and not an end.

    Raises UsageError where there is none, Damaged where one that has to be read is not what was written.
    """
    if goal.seq is not None:
        return points.read_point(directory, goal.seq)
    point, there = head, set(points.numbers(directory))
    while point.turns != goal.turn or point.pending_tool_use or point.finished:
        if point.parent not in there:
            text = f"{directory}: no point on the line of the head stands at the end of turn {goal.turn}"
            raise UsageError(text)
        point = points.read_point(directory, point.parent)
    return point


def admit_unknown(harness: Harness, acts: Acts, head: Checkpoint) -> None:
    """Record as unknown what was begun at this head and never recorded; the line that knows of it is left."""
    for call in head.pending_tool_use:
        if call.key is None or not call.started:
            continue
        with harness.claim(acts, call):
            if acts.latest(call.key) is None:
                acts.append(_unknown(call, call.key, head, len(acts.records) + 1))


def _unknown(call: OpenCall, key: str, head: Checkpoint, number: int) -> Record:
    return Record(
        n=number,
        run_id=head.run_id,
        timeline=head.timeline,
        writer_epoch=head.writer_epoch,
        key=key,
        tool=call.name,
        args_digest=args_digest(call.input),
        tool_use_id=call.id,
        outcome="unknown",
        result=UNKNOWN_TEXT,
    )


def _head(harness: Harness, directory: Path) -> Checkpoint:
    head = harness.load(directory)
    if head is None:
        text = f"{directory} holds no points: there is nothing to go back to"
        raise UsageError(text)
    return head


def _base(directory: Path) -> str:
    return directory.name if points.is_fork(directory) else "main"
