"""Tests of longrun.eventlog.log: batches, promises, and what a failure leaves."""

from __future__ import annotations

import errno
import os
import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from longrun.eventlog import log as module
from longrun.eventlog.design import DESIGN
from longrun.eventlog.errors import InvalidEvent, LogBroken, LogFenced
from longrun.eventlog.events import Note, TurnStart
from longrun.eventlog.slots import read_slots
from tests.longrun.eventlog.sessions import begin, files, mark, noted, numbers_of, opened, segment

if TYPE_CHECKING:
    from pathlib import Path


def test_a_record_is_shown_only_once_it_is_durable(tmp_path: Path) -> None:
    """Queued, it is in no projection and in no file; then in both."""
    with opened(tmp_path) as log:
        before = segment(tmp_path).read_bytes()
        ticket = log.append(Note(note={"n": 1}))
        assert numbers_of(log) == []
        assert segment(tmp_path).read_bytes() == before
        assert ticket.wait() == 2
        assert numbers_of(log) == [1]
        assert segment(tmp_path).read_bytes() == before + ticket.line + b"\n"


def test_what_is_shown_is_what_a_reader_reads(tmp_path: Path) -> None:
    """The caller may go on with its own object as it likes."""
    note: dict[str, Any] = {"n": 1, "list": [1]}
    with opened(tmp_path) as log:
        log.append(Note(note=note))
        note["list"].append(2)
        log.flush()
        assert log.records[-1].data == {"n": 1, "list": [1]}
    with opened(tmp_path) as log:
        assert log.records[2].data == {"n": 1, "list": [1]}


def test_all_that_is_queued_is_one_write_and_one_sync(tmp_path: Path) -> None:
    """Whoever waits first takes the others along."""
    with opened(tmp_path) as log:
        before = log.syncs
        tickets = [log.append(Note(note={"n": n})) for n in range(50)]
        tickets[10].wait()
        assert log.syncs == before + 1
        assert numbers_of(log) == list(range(50))
        assert [ticket.wait() for ticket in tickets] == list(range(2, 52))
        assert log.syncs == before + 1


@pytest.mark.parametrize(("count", "text"), [(module.BATCH_RECORDS, ""), (2, "x" * module.BATCH_BYTES)])
def test_a_batch_has_a_limit(tmp_path: Path, count: int, text: str) -> None:
    """So many records, or so many bytes, are written though nobody waits."""
    with opened(tmp_path) as log:
        for n in range(count):
            log.append(Note(note={"n": n, "text": text}))
        assert numbers_of(log) == list(range(count))


def test_eight_writers_share_their_syncs(tmp_path: Path) -> None:
    """While one sync is under way the others queue; the next sync is for all of them."""
    entered, free = threading.Event(), threading.Event()

    def slow(descriptor: int) -> None:
        entered.set()
        assert free.wait(60)
        os.fdatasync(descriptor)

    with opened(tmp_path) as log:
        log.design = replace(DESIGN, sync=slow)
        before = log.syncs
        first = threading.Thread(target=lambda: log.append(Note(note={"n": 0})).wait())
        first.start()
        assert entered.wait(60)
        tickets = [log.append(Note(note={"n": n})) for n in range(1, 8)]
        others = [threading.Thread(target=ticket.wait) for ticket in tickets]
        for each in others:
            each.start()
        free.set()
        for each in (first, *others):
            each.join()
        assert numbers_of(log) == list(range(8))
        assert log.syncs == before + 2


def test_a_barrier_promises_what_is_durable(tmp_path: Path) -> None:
    """The mark follows the log, and each record says what was promised when it was made."""
    with opened(tmp_path) as log:
        log.add(Note(note={"n": 1}))
        assert (log.promised, max(read_slots(mark(tmp_path).read_bytes()))) == (1, 1)
        assert log.barrier() == 2
        assert max(read_slots(mark(tmp_path).read_bytes())) == 2
        log.add(Note(note={"n": 2}))
        assert [record.mark for record in log.records] == [-1, -1, 1, 2]
        syncs = log.syncs
        log.barrier()
        log.barrier()
        assert log.syncs == syncs + 1  # nothing new to promise


def test_a_write_that_fails_is_taken_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half a line is cut off again; what was queued behind it is dropped; the next append works."""
    with opened(tmp_path) as log:
        log.add(Note(note={"n": 1}))
        before = segment(tmp_path).read_bytes()

        def half(descriptor: int, data: bytes) -> None:
            os.write(descriptor, data[: len(data) // 2])
            raise OSError(errno.ENOSPC, "full")

        with monkeypatch.context() as patch:
            patch.setattr(module, "write_all", half)
            tickets = [log.append(Note(note={"n": n})) for n in (2, 3)]
            with pytest.raises(OSError, match="full"):
                log.flush()
        assert segment(tmp_path).read_bytes() == before
        assert numbers_of(log) == [1]
        for ticket in tickets:
            with pytest.raises(OSError, match="full"):
                ticket.wait()
        log.add(Note(note={"n": 4}))
    with opened(tmp_path) as log:
        assert numbers_of(log) == [1, 4]


def test_a_sync_that_fails_breaks_the_log(tmp_path: Path) -> None:
    """A second one would return 0 and make nothing durable, so there is none; opened anew, it goes on."""

    def fails(_descriptor: int) -> None:
        raise OSError(errno.EIO, "no")

    with opened(tmp_path) as log:
        log.add(Note(note={"n": 1}))
        log.barrier()
        log.design = replace(DESIGN, sync=fails)
        with pytest.raises(OSError, match="no"):
            log.add(Note(note={"n": 2}))
        log.design = DESIGN
        for act in (log.flush, log.barrier, lambda: log.append(Note(note={"n": 3}))):
            with pytest.raises(LogBroken, match="a sync failed"):
                act()
        inode = segment(tmp_path).stat().st_ino
        log.abandon()
    with opened(tmp_path) as log:
        assert numbers_of(log) == [1, 2]  # nobody was told, and nobody was told otherwise
        assert segment(tmp_path).stat().st_ino != inode  # written anew, as the pages may have been given up


def test_a_promise_that_fails_is_none(tmp_path: Path) -> None:
    """The record is there, and what was to follow the barrier must not be done."""

    def fails(_descriptor: int) -> None:
        raise OSError(errno.EIO, "no")

    with opened(tmp_path) as log:
        log.add(Note(note={"n": 1}))
        log.design = replace(DESIGN, sync=fails)
        with pytest.raises(OSError, match="no"):
            log.barrier()
        assert log.promised == 1
        with pytest.raises(LogBroken):
            log.barrier()
        log.abandon()


def test_a_stale_writer_writes_nothing(tmp_path: Path) -> None:
    """Who lost the lease finds a higher fence, another file, or a longer segment, and stops."""
    stale = opened(tmp_path)
    (tmp_path / "s" / "lease").unlink()  # the lock is on a file that nobody sees any more
    with opened(tmp_path) as log:
        log.add(Note(note={"n": 1}))
        before = files(tmp_path)
        with pytest.raises(LogFenced):
            stale.add(Note(note={"n": 2}))
        assert files(tmp_path) == before
        log.add(Note(note={"n": 3}))
    stale.abandon()
    with opened(tmp_path) as log:
        assert numbers_of(log) == [1, 3]


def test_a_segment_that_has_grown_is_not_written(tmp_path: Path) -> None:
    """Somebody else was here, with whatever right."""
    with opened(tmp_path) as log:
        with segment(tmp_path).open("ab") as file:
            file.write(b"hello\n")
        with pytest.raises(LogFenced, match="this writer left"):
            log.add(Note(note={"n": 1}))
        log.abandon()


def test_a_refused_event_leaves_no_gap(tmp_path: Path) -> None:
    """The number is given to the next one."""
    with opened(tmp_path) as log:
        with pytest.raises(InvalidEvent):
            log.append(TurnStart(turn=7))
        assert log.add(Note(note={"n": 1})) == 2


def test_a_new_segment_begins_where_no_turn_is_open(tmp_path: Path) -> None:
    """It names the one before it, which never changes again."""
    noted(tmp_path, 1)
    with opened(tmp_path) as log:
        sealed = segment(tmp_path).read_bytes()
        assert not log.rotate()
        assert log.rotate(force=True)
        assert log.records[-1].data == {"segment": 1, "before": {"bytes": len(sealed), "sum": log.records[-2].sum}}
        begin(log)
        assert not log.rotate(force=True)
    assert segment(tmp_path).read_bytes() == sealed
    with opened(tmp_path) as log:
        assert numbers_of(log) == [1]
        assert log.segment == 1


def test_a_segment_is_full_at_so_many_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also over several openings."""
    monkeypatch.setattr(module, "MAX_RECORDS", 6)
    noted(tmp_path, 1, 2)
    with opened(tmp_path) as log:
        assert not log.rotate()
        log.add(Note(note={"n": 3}))
        assert log.rotate()
        assert not log.rotate()
        assert log.segment_records == 1


def test_a_segment_that_cannot_be_made_leaves_the_old_one_in_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error is told, nothing is half done."""
    with opened(tmp_path) as log:

        def full(*_given: object, **_named: object) -> None:
            raise OSError(errno.ENOSPC, "full")

        with monkeypatch.context() as patch:
            patch.setattr(module, "publish", full)
            with pytest.raises(OSError, match="full"):
                log.rotate(force=True)
        log.add(Note(note={"n": 1}))
        assert log.rotate(force=True)
    with opened(tmp_path) as log:
        assert numbers_of(log) == [1]
