"""Opening a session: ``open_log`` takes the lease and repairs on disk, ``inspect`` reads and repairs in memory.

A living session is never repaired: the lease comes first. Nothing is written before all has been read and found
good, so a refusal leaves the files as they are. What a repair adds is told to the log by appending, like all else.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from longrun.eventlog import segments
from longrun.eventlog.design import DESIGN
from longrun.eventlog.events import FORMAT, SessionStart, WriterStart
from longrun.eventlog.grammar import Grammar
from longrun.eventlog.log import EventLog, now_ms
from longrun.eventlog.record import NO_SUM, Draft, decode, encode
from longrun.eventlog.repair import cannot_tell
from longrun.eventlog.scan import Reader
from longrun.eventlog.segments import MARK_NAME, publish, segment_numbers, segment_path, session_directory
from longrun.eventlog.slots import NOTHING, Slots, fresh
from longrun.files import sync_directory

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from longrun.eventlog.design import Design
    from longrun.eventlog.events import Event, Json
    from longrun.eventlog.grammar import Pending
    from longrun.eventlog.lease import Owner
    from longrun.eventlog.repair import Evidence, Found
    from longrun.eventlog.scan import Scan
    from longrun.eventlog.shelf import Shelf


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """How a session is opened. ``ask`` is the world, ``writer`` a name for people.

    ``parent`` and ``seed`` are of a new session alone: whose fork it is, and the events that it begins with.
    """

    design: Design = DESIGN
    ask: Callable[[Pending], Found | None] = cannot_tell
    writer: str = ""
    clock: Callable[[], int] = now_ms
    parent: Json | None = None
    seed: tuple[Event, ...] = ()


def open_log(root: Path, session_id: str, opening: Opening | None = None) -> EventLog:
    """Open a session for writing, making it where there is none; what a crash left is repaired, durably.

    Raises LogBusy while another process has it, LogDamaged or LogUnsupported where it may not be gone on with; then
    no file has changed.
    """
    how = opening or Opening()
    directory = session_directory(root, session_id)
    if not directory.is_dir() or not segment_numbers(directory):  # or who made it died before its name was durable
        directory.mkdir(parents=True, exist_ok=True)
        _make_durable(directory)
    owner = how.design.take(directory)
    try:
        return _opened(directory, session_id, how, owner)
    except BaseException:
        owner.close()
        raise


def _make_durable(directory: Path) -> None:
    """Sync the name of a new session; where that fails remove it again, since a second sync may save nothing."""
    try:
        sync_directory(directory.parent)
    except OSError:
        with contextlib.suppress(OSError):  # what is in it is somebody's
            directory.rmdir()
        raise


def _opened(directory: Path, session_id: str, how: Opening, owner: Owner) -> EventLog:
    scan = how.design.reader.read(directory)
    segments.clear(directory)
    fence = 1 + max(owner.stored, scan.grammar.fence, 0)
    if not (directory / MARK_NAME).exists():
        publish(directory / MARK_NAME, fresh())
    owner.claim(fence, scan.promised)
    new = scan.empty
    if new:
        scan = _create(directory, session_id, how, fence)
    evidence = scan.evidence
    how.design.mend(scan)
    log = _log_of(scan, how, owner, fence)
    try:
        if not new:
            _begin(log, how, evidence)
        log.barrier()
    except BaseException:
        log.abandon()
        raise
    return log


def _create(directory: Path, session_id: str, how: Opening, fence: int) -> Scan:
    """A new log, with its first records, there at once; and what a reader makes of it."""
    start = SessionStart(session_id=session_id, format=FORMAT, created_ms=how.clock(), parent=how.parent)
    grammar, prev, lines = Grammar(), NO_SUM, []
    for event in (start, WriterStart(writer=_writer(how), reason="new"), *how.seed):
        draft = Draft(
            seq=grammar.seq,
            prev=prev,
            mark=NOTHING,
            fence=fence,
            time_ms=how.clock(),
            parent=grammar.leaf if event.SURFACE else None,
            type=event.TYPE,
            data=event.data(),
            surface=event.SURFACE,
            ignorable=event.IGNORABLE,
        )
        line = encode(draft)
        record = decode(line)
        grammar.advance(record)
        prev = record.sum
        lines.append(line)
    publish(segment_path(directory, 0), b"".join(line + b"\n" for line in lines))
    scan = how.design.reader.read(directory)
    scan.promised = scan.good  # it was synced before it got its name: no need to write it again
    return scan


def _log_of(scan: Scan, how: Opening, owner: Owner, fence: int) -> EventLog:
    descriptor = os.open(segment_path(scan.directory, scan.segment), os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
    try:
        mark = Slots.of(os.open(scan.directory / MARK_NAME, os.O_RDWR | os.O_CLOEXEC))
    except OSError:
        os.close(descriptor)
        raise
    here = sum(segment == scan.segment for segment, _ in scan.records.places)
    return EventLog(
        directory=scan.directory,
        design=how.design,
        fence=fence,
        grammar=scan.grammar,
        records=scan.records,
        _owner=owner,
        _mark=mark,
        _descriptor=descriptor,
        _segment=scan.segment,
        _size=scan.size,
        segment_records=here,
        clock=how.clock,
    )


def _begin(log: EventLog, how: Opening, evidence: Evidence) -> None:
    """This writer's first record, and the repair, in one flush."""
    reason: Literal["resume", "takeover"] = "takeover" if log.grammar.open else "resume"
    events = how.design.repair(log.grammar, how.ask, evidence)
    log.add(WriterStart(writer=_writer(how), reason=reason), *events)


def _writer(how: Opening) -> str:
    return how.writer or f"{os.getpid()}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspection:
    """What an inspection found. ``repairs`` are the events that an opening would add; ``report`` says what is odd."""

    records: Shelf
    grammar: Grammar
    repairs: list[Event]
    report: list[str]
    promised: int


def inspect(root: Path, session_id: str, opening: Opening | None = None) -> Inspection:
    """Read a session without lease, repairing in memory alone. Works while somebody writes, and on a read-only disk.

    Raises FileNotFoundError where there is none, LogDamaged and LogUnsupported.
    """
    return inspect_directory(session_directory(root, session_id), opening)


def inspect_directory(directory: Path, opening: Opening | None = None, *, whole: bool = False) -> Inspection:
    """The same of the session that lives in ``directory``; with ``whole`` every line is read, past all snapshots."""
    how = opening or Opening()
    scan = Reader().verify(directory) if whole else how.design.reader.read(directory)
    if scan.empty:
        text = f"{directory}: there is no session"
        raise FileNotFoundError(text)
    repairs = how.design.repair(scan.grammar, how.ask, scan.evidence)
    return Inspection(
        records=scan.records,
        grammar=scan.grammar,
        repairs=repairs,
        report=report_of(scan),
        promised=scan.promised,
    )


def report_of(scan: Scan) -> list[str]:
    """What is odd about a log that can be read, one line each."""
    found = list(scan.notes)
    if scan.weakened:
        found.append("weakened: no slot of the mark can be read; the marks in the records are all there is")
    if scan.tail:
        found.append(f"torn tail: {len(scan.tail)} bytes behind record {scan.good}, promised to nobody")
    if not scan.ends:
        found.append("the last line has no end")
    found += [f"segment {number} is empty" for number in scan.spare]
    return found
