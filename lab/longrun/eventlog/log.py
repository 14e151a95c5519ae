"""Writing a log: records are queued, written together, synced once, and shown only then.

The first caller who needs a record on disk writes everything that is queued by then, with one ``write`` and one
``fdatasync``; the others find it done. So a batch closes when somebody waits, and at 256 records or 64 KiB at the
latest. No thread and no clock: what nobody waits for stays queued until the next barrier.

A *barrier* says that all so far is promised: after the sync the mark is raised. What follows it (a tool's body, the
answer to the caller) may rely on that after any crash, and a reader can tell a torn tail from damage.

A write that fails is taken back, and everything queued behind it is dropped with it. A sync that fails breaks the log.
"""

from __future__ import annotations

import contextlib
import copy
import os
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from longrun.eventlog.errors import LogBroken
from longrun.eventlog.events import SegmentStart
from longrun.eventlog.record import NO_SUM, Draft, decode, encode
from longrun.eventlog.segments import MAX_BYTES, MAX_RECORDS, publish, segment_path
from longrun.files import write_all

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from longrun.eventlog.design import Design
    from longrun.eventlog.events import Event
    from longrun.eventlog.grammar import Grammar
    from longrun.eventlog.lease import Owner
    from longrun.eventlog.record import Record
    from longrun.eventlog.shelf import Shelf
    from longrun.eventlog.slots import Slots

BATCH_RECORDS, BATCH_BYTES = 256, 64 * 1024


def now_ms() -> int:
    """The time of day in milliseconds. Nothing is ordered by it."""
    return time.time_ns() // 1_000_000


@dataclass(eq=False)
class Ticket:
    """The place of a record on its way. ``wait`` returns once it is durable, and raises where it never will be."""

    log: EventLog
    record: Record
    line: bytes
    error: Exception | None = None
    settled: bool = False

    @property
    def seq(self) -> int:
        """Its number, final once it is durable."""
        return self.record.seq

    def wait(self) -> int:
        """Make it durable, and return its seq. Raises what its write raised."""
        self.log.flush(self)
        return self.record.seq


@dataclass(eq=False)
class EventLog:
    """An open session, held by one process. Safe to append to from several threads.

    Made by :func:`longrun.eventlog.opening.open_log`. ``records`` and ``grammar`` are what is durable: projections
    read these, and nothing that is only queued.
    """

    directory: Path
    design: Design
    fence: int
    grammar: Grammar
    records: Shelf
    _owner: Owner
    _mark: Slots
    _descriptor: int
    _segment: int
    _size: int
    segment_records: int = 0
    clock: Callable[[], int] = now_ms
    syncs: int = 0
    _queue: list[Ticket] = field(default_factory=list)
    _queued_bytes: int = 0
    _ahead: Grammar = field(init=False)
    _end: int = field(init=False)
    _sum: str = field(init=False)
    _broken: str = ""
    _closed: bool = False
    _lock: threading.RLock = field(default_factory=threading.RLock, repr=False)
    _flusher: threading.RLock = field(default_factory=threading.RLock, repr=False)
    _idle: threading.Condition = field(default_factory=threading.Condition, repr=False)
    _busy: int = 0

    def __post_init__(self) -> None:
        self._ahead, self._end = copy.deepcopy(self.grammar), self._size
        self._sum = self.records[-1].sum if len(self.records) else NO_SUM

    # --- appending -------------------------------------------------------------------------------

    def append(self, event: Event) -> Ticket:
        """Queue one event. Raises InvalidEvent where it may not come next, and then nothing has changed."""
        with self._lock:
            self._require_usable()
            ahead = self._ahead
            draft = Draft(
                seq=ahead.seq,
                prev=self._sum,
                mark=self._mark.number,
                fence=self.fence,
                time_ms=self.clock(),
                parent=ahead.leaf if event.SURFACE else None,
                type=event.TYPE,
                data=event.data(),
                surface=event.SURFACE,
                ignorable=event.IGNORABLE,
            )
            line = encode(draft)
            record = decode(line)  # what is shown later is what a reader reads, and not the caller's own object
            ahead.advance(record)
            self._sum = record.sum
            ticket = Ticket(self, record, line)
            self._queue.append(ticket)
            self._queued_bytes += len(line)
            if self.design.shows_queued:
                self._show([ticket])
            full = len(self._queue) >= BATCH_RECORDS or self._queued_bytes >= BATCH_BYTES
        if full:
            self.flush(ticket)
        return ticket

    def add(self, *events: Event) -> int:
        """Append all and wait until they are durable. Returns the seq of the last one; of none, the last of all."""
        tickets = [self.append(event) for event in events]
        self.flush()
        return tickets[-1].seq if tickets else self.grammar.seq - 1

    def flush(self, ticket: Ticket | None = None) -> None:
        """Make durable what is queued; with a ticket, return as soon as that one is. Raises OSError or LogError."""
        while ticket is not None and not self._is_settled(ticket):
            if self._flusher.acquire(blocking=False):
                self._flusher.release()
                break
            with self._idle:  # somebody flushes: that may settle it, and if not, one of those who wait is the next
                self._idle.wait_for(lambda: self._is_settled(ticket) or not self._busy)
        if ticket is not None and self._is_settled(ticket):
            return
        with self._alone():
            with self._lock:
                self._require_usable()
                batch, self._queue, self._queued_bytes = self._queue, [], 0
            if not batch:
                return
            try:
                self._write(b"".join(each.line + b"\n" for each in batch))
            except Exception as error:
                self._drop(batch, error)
                raise
            with self._lock:
                self._settle(batch)

    def _is_settled(self, ticket: Ticket) -> bool:
        """Whether a record is durable. Raises what kept it from becoming so."""
        if ticket.error is not None:
            raise ticket.error
        return ticket.settled

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """One thread at a time writes and syncs; who waits for a record is woken once, and not in turn."""
        with self._flusher:
            self._busy += 1
            try:
                yield
            finally:
                self._busy -= 1
                with self._idle:
                    self._idle.notify_all()

    def barrier(self) -> int:
        """Make durable what is queued, and promise it. Returns the highest promised seq.

        Fails closed: where it raises, what was to follow must not be done.
        """
        with self._alone():
            self.flush()
            last = self.grammar.seq - 1
            if last > self._mark.number:
                self._mark.raise_to(last, self._sync)
            return self._mark.number

    def called(self, call_id: str) -> int | None:
        """The seq of the ``tool/call`` of an open call, queued ones too; None where it was not called."""
        with self._lock:
            pending = self._ahead.pending.get(call_id)
            return None if pending is None else pending.called

    @property
    def segment(self) -> int:
        """The number of the segment that is written."""
        return self._segment

    @property
    def size(self) -> int:
        """How many bytes of it hold records."""
        return self._size

    @property
    def broken(self) -> bool:
        """Whether this handle can do nothing more; the session itself may well be sound."""
        return bool(self._broken)

    @property
    def promised(self) -> int:
        """The highest seq that was promised; -1 for none."""
        return self._mark.number

    def rotate(self, *, force: bool = False) -> bool:
        """Begin a new segment where this one is large enough, and no turn is open. Returns whether it did."""
        with self._alone():
            self.barrier()
            large = self._size >= MAX_BYTES or self.segment_records >= MAX_RECORDS
            if not (large or force) or self.grammar.open:
                return False
            self._require_ours()
            ticket = self._first_of_segment()
            path = segment_path(self.directory, self._segment + 1)
            try:
                publish(path, ticket.line + b"\n", sync=self._sync)
                descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
            except OSError as error:
                self._drop([ticket], error)
                if path.exists():  # whether its name is durable nobody knows
                    self._broken = f"a new segment could not be made ({error})"
                raise
            os.close(self._descriptor)
            self._descriptor, self._segment = descriptor, self._segment + 1
            self._size = self._end = self.segment_records = 0
            self._settle([ticket])
            return True

    def _first_of_segment(self) -> Ticket:
        before = {"bytes": self._size, "sum": self._sum}
        with self._lock:
            ticket = self.append(SegmentStart(segment=self._segment + 1, before=before))
            self._queue, self._queued_bytes = [], 0
            return ticket

    def close(self) -> None:
        """Promise what is queued, unless the log is broken, and let the next writer in. Does nothing a second time."""
        if self._closed:
            return
        try:
            if not self._broken:
                self.barrier()
        finally:
            self._closed = True
            os.close(self._descriptor)
            os.close(self._mark.descriptor)
            self._owner.close()
            self._broken = self._broken or "it was closed"

    def abandon(self) -> None:
        """Close without writing what is queued: nobody was told of it."""
        self._broken = self._broken or "it was given up"
        self.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.close()
        else:
            self.abandon()

    # --- the files -------------------------------------------------------------------------------

    def _write(self, data: bytes) -> None:
        """One batch at the end of the segment, durable when this returns."""
        self._require_ours()
        try:
            write_all(self._descriptor, data)
        except OSError:
            self._take_back()
            raise
        self._sync(self._descriptor)

    def _require_ours(self) -> None:
        """Raise LogFenced unless the session is still this writer's, and the segment as it left it."""
        self._owner.require(self.fence, self._descriptor, self._size)

    def _take_back(self) -> None:
        """Cut half a batch off again: what comes next must not be glued to it."""
        try:
            os.ftruncate(self._descriptor, self._size)
        except OSError as error:
            self._broken = f"half a batch could not be taken back ({error})"

    def _sync(self, descriptor: int) -> None:
        self.syncs += 1
        try:
            self.design.sync(descriptor)
        except OSError as error:
            self._broken = f"a sync failed ({error})"
            raise

    def _settle(self, batch: list[Ticket]) -> None:
        """The batch is durable: show it."""
        self._size += sum(len(each.line) + 1 for each in batch)
        for each in batch:
            each.settled = True
        if not self.design.shows_queued:
            self._show(batch)

    def _show(self, batch: list[Ticket]) -> None:
        for each in batch:
            self.grammar.take(each.record)
            self.records.put(each.record, (self._segment, self._end))
            self._end += len(each.line) + 1
        self.segment_records += len(batch)

    def _drop(self, batch: list[Ticket], error: Exception) -> None:
        """Forget what could not be written, and what was queued behind it: it follows what is not there."""
        with self._lock:
            for each in (*batch, *self._queue):
                each.error = error
            self._queue, self._queued_bytes = [], 0
            self._ahead = copy.deepcopy(self.grammar)
            self._sum = self.records[-1].sum if len(self.records) else NO_SUM

    def _require_usable(self) -> None:
        if self._broken:
            text = f"{self.directory}: {self._broken}. Close this log and open the session again."
            raise LogBroken(text)
