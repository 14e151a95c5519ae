"""Tests of longrun.eventlog.snapshot: derived, never the truth; and evidence where it knows more than the log."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from longrun.eventlog import project
from longrun.eventlog.errors import LogDamaged
from longrun.eventlog.events import Note
from longrun.eventlog.opening import inspect
from longrun.eventlog.scan import Reader
from longrun.eventlog.segments import snapshot_path
from longrun.eventlog.slots import fresh
from longrun.eventlog.snapshot import write_snapshot
from tests.longrun.eventlog.sessions import NAME, begin, directory, files, mark, opened, segment, whole_turn

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def seq(tmp_path: Path) -> int:
    """A session of two segments with a snapshot of this record, and a turn behind it."""
    with opened(tmp_path) as log:
        whole_turn(log, "a")
        log.rotate(force=True)
        log.add(Note(note={"n": 1}))
        path = write_snapshot(log)
        assert path is not None
        whole_turn(log, "b")
    return int(path.stem.removeprefix("snap-"))


def test_what_follows_is_read_and_what_came_before_is_looked_up(tmp_path: Path, seq: int) -> None:
    """The same records, grammar and views as by reading all."""
    part, whole = Reader().read(directory(tmp_path)), Reader().verify(directory(tmp_path))
    assert (part.records.base, whole.records.base) == (seq + 1, 0)
    assert list(part.records) == list(whole.records)
    assert vars(part.grammar) == vars(whole.grammar)
    assert project.messages(part.records) == project.messages(whole.records)
    assert part.records[-3:] == whole.records[-3:]


def test_it_goes_on_from_there(tmp_path: Path, seq: int) -> None:
    """Written, rotated and read again, with a newer snapshot in the place of the older one."""
    with opened(tmp_path) as log:
        whole_turn(log, "c")
        log.rotate(force=True)
        assert write_snapshot(log) is not None
        assert write_snapshot(log) is None
        begin(log)
        assert write_snapshot(log) is None
    assert not snapshot_path(directory(tmp_path), seq).exists()
    found = inspect(tmp_path, NAME)
    assert found.report == []
    assert len(Reader().verify(directory(tmp_path)).records) == len(found.records)


@pytest.mark.parametrize("spoil", ["empty", "zeros", "cut", "version", "missing", "bit"])
def test_one_that_cannot_be_used_is_passed_over(tmp_path: Path, seq: int, spoil: str) -> None:
    """The log is read whole, and the report says why."""
    path = snapshot_path(directory(tmp_path), seq)
    data = path.read_bytes()
    spoiled = {
        "empty": b"",
        "zeros": bytes(len(data)),
        "cut": data[:-20],
        "version": data.replace(b'"v":1', b'"v":2'),
        "bit": data[:30] + b"~" + data[31:],
    }
    path.unlink()
    if spoil != "missing":
        path.write_bytes(spoiled[spoil])
    found = inspect(tmp_path, NAME)
    assert found.records.base == 0
    assert [line.split(":")[0] for line in found.report] == (
        [] if spoil == "missing" else [f"snapshot {seq} is passed over"]
    )


def test_a_log_behind_its_own_snapshot_was_put_back(tmp_path: Path, seq: int) -> None:
    """Mark and log of an earlier time agree; the snapshot alone knows what was promised."""
    kept = list(Reader().verify(directory(tmp_path)).records)
    segment(tmp_path, 1).unlink()
    mark(tmp_path).write_bytes(fresh(5))
    before = files(tmp_path)
    with pytest.raises(LogDamaged, match=f"of {seq} that are promised"):
        opened(tmp_path)
    assert files(tmp_path) == before
    assert kept[seq].type == "note"


def test_a_log_that_is_gone_is_not_a_new_session(tmp_path: Path, seq: int) -> None:
    """A snapshot tells of it, though the mark is gone too."""
    for path in (segment(tmp_path), segment(tmp_path, 1), mark(tmp_path)):
        path.unlink()
    with pytest.raises(LogDamaged, match="the log that a snapshot tells of"):
        opened(tmp_path)
    assert seq


def test_a_record_behind_the_snapshot_verifies_itself_when_it_is_read(tmp_path: Path, seq: int) -> None:
    """An opening trusts sealed bytes; whoever asks for one that is spoiled is told, with the place."""
    data = bytearray(segment(tmp_path).read_bytes())
    data[-30] ^= 1
    segment(tmp_path).write_bytes(bytes(data))
    found = inspect(tmp_path, NAME)
    assert found.records.base == seq + 1
    with pytest.raises(LogDamaged, match="does not fit its sum"):
        list(found.records)
    with pytest.raises(LogDamaged):
        Reader().verify(directory(tmp_path))
