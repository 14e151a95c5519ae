"""The run's one ledger, shared by all its timelines, two of which may be at work at the same time.

The rule is one lock, the operating system's, on the ledger itself. Whoever appends holds it, and reads first what
others have appended. Whoever acts holds it from the question whether the act was done until it is recorded:
between these two a second process would find no record either. It is not held while a model is asked. A kill frees
it; what the killed one had begun and not recorded, its head tells: a call that is marked as started. So before an act
the heads of the other timelines are read, one point each.

The limit: a person or a program that copies the directory of a run has two runs, which no lock ties together.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from longrun.errors import Damaged
from longrun.files import sync_directory
from longrun.ledger import LEDGER_NAME, Ledger, Record, read_records
from longrun.rewind import points

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

    from longrun.ledger import Acts
    from longrun.protocol import Checkpoint, OpenCall


@dataclass(eq=False)
class SharedLedger(Ledger):
    """The ledger, as one timeline of several has it open. Not shared between threads."""

    directory: Path | None = None
    _depth: int = 0

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Nobody else appends or acts within this block; what they did before is read. Waits for its turn."""
        if not self._depth:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX)
        self._depth += 1
        try:
            if self._depth == 1:
                self._catch_up()
            yield
        finally:
            self._depth -= 1
            if not self._depth:
                fcntl.flock(self._descriptor, fcntl.LOCK_UN)

    @contextlib.contextmanager
    def claim(self, key: str) -> Iterator[bool]:
        """Hold the act ``key``; True where another timeline has begun it and did not come to record it."""
        with self.alone():
            yield self.latest(key) is None and any(key in started(head) for head in self._other_heads())

    def append(self, record: Record) -> None:
        """Add one record, durable when this returns; it gets the number that is free by then."""
        with self.alone():
            super().append(replace(record, n=len(self.records) + 1))

    def _catch_up(self) -> None:
        """Take in what others have appended. One that was killed in it has left a torn tail, or an unsynced record."""
        size = os.fstat(self._descriptor).st_size
        if size == self._size:
            return
        records, whole = read_records(self.path, self.path.read_bytes(), seen=len(self.records))
        if whole != size:
            os.ftruncate(self._descriptor, whole)
        os.fsync(self._descriptor)
        self.records, self._size = records, whole
        self._latest = {record.key: record for record in records}

    def _other_heads(self) -> Iterator[Checkpoint]:
        run = self.path.parent
        forks = run / points.FORKS_NAME
        named = [forks / name for name in sorted(os.listdir(forks))] if forks.is_dir() else []
        for place in (run, *named):
            if place != self.directory and (found := points.numbers(place)):
                yield points.read_point(place, found[-1])


def started(head: Checkpoint) -> set[str]:
    """The acts that were begun in the last turn of this head."""
    return {call.key for call in head.pending_tool_use if call.started and call.key is not None}


def open_shared(directory: Path, saved: Checkpoint | None) -> SharedLedger:
    """The run's ledger, for the timeline in ``directory``; a new one after the very first save. Raises Damaged."""
    path = points.run_of(directory) / LEDGER_NAME
    if saved is None:
        return _shared(Ledger.create(path), directory)
    if saved.parent is None and not path.exists():  # later it can only have been lost
        sync_directory(directory / points.POINTS_NAME)  # what was read may be in the page cache only
        return _shared(Ledger.create(path), directory)
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError as error:
        raise Damaged(path, "the ledger is gone, but a point knows of one") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)  # a live process may be amid a line, which is no torn tail
        return _shared(Ledger.open(path, seen=saved.ledger_seen), directory)
    finally:
        os.close(descriptor)


def _shared(ledger: Ledger, directory: Path) -> SharedLedger:
    fields = (ledger.path, ledger._descriptor, ledger._size, ledger.records, ledger._latest)  # noqa: SLF001 - its own kind
    return SharedLedger(*fields, directory=directory)


def claim(acts: Acts, call: OpenCall) -> AbstractContextManager[bool]:
    """What the loop holds around a call: the act, where it is one. A read needs nothing."""
    if call.key is None or not isinstance(acts, SharedLedger):
        return contextlib.nullcontext(False)  # noqa: FBT003 - the answer: begun by nobody else
    return acts.claim(call.key)
