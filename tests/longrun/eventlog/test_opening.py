"""Tests of longrun.eventlog.opening: repair by appended facts, and an inspection that changes nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING
from unittest.mock import patch

import pytest

from longrun.eventlog.design import DESIGN
from longrun.eventlog.errors import LogBusy, LogDamaged
from longrun.eventlog.events import Note
from longrun.eventlog.grammar import Grammar
from longrun.eventlog.lease import promised_before
from longrun.eventlog.opening import Opening, inspect, open_log
from longrun.eventlog.repair import Found
from longrun.eventlog.scan import Reader
from longrun.eventlog.slots import NOTED, NOTHING, slot_of
from tests.longrun.eventlog.sessions import (
    NAME,
    answer,
    begin,
    call,
    files,
    mark,
    noted,
    opened,
    result,
    segment,
    whole_turn,
)
from tests.longrun.open_files import open_below

if TYPE_CHECKING:
    from pathlib import Path

    from longrun.eventlog.grammar import Pending
    from longrun.eventlog.log import EventLog
    from longrun.eventlog.record import Draft, Record


def test_a_new_session_is_there_whole_and_promised(tmp_path: Path) -> None:
    """Its first two records, and the mark."""
    opened(tmp_path).close()
    found = inspect(tmp_path, NAME)
    assert [record.type for record in found.records] == ["session/start", "writer/start"]
    assert found.promised == 1
    (tmp_path / "t").mkdir()
    with pytest.raises(FileNotFoundError, match="there is no session"):
        inspect(tmp_path, "t")


def test_opening_again_adds_a_writer_and_nothing_else(tmp_path: Path) -> None:
    """Each time with a higher fence; what was there stays byte for byte."""
    noted(tmp_path, 1)
    for _ in range(3):
        before = segment(tmp_path).read_bytes()
        with opened(tmp_path) as log:
            added = log.records[-1]
        after = segment(tmp_path).read_bytes()
        assert after.startswith(before)
        assert after[len(before) :].count(b"\n") == 1
        assert (added.type, added.data["reason"]) == ("writer/start", "resume")
    assert added.fence == 4


def test_while_one_has_it_open_no_other_opens_it(tmp_path: Path) -> None:
    """A living session is never repaired; an inspection may look."""
    with opened(tmp_path) as log:
        begin(log)
        before = files(tmp_path)
        with pytest.raises(LogBusy, match="another process has this session open"):
            opened(tmp_path)
        assert inspect(tmp_path, NAME).grammar.open
        assert files(tmp_path) == before


def interrupted(root: Path) -> EventLog:
    """A turn with five calls, in as many states, whose process is gone."""
    log = opened(root)
    begin(log)
    answer(log, "done", "asked", "read", "keyed", "late", "none")
    call(log, "done")
    result(log, "done")
    call(log, "asked")
    call(log, "read", policy="read")
    call(log, "keyed", policy="keyed", key="k")
    call(log, "late", promise=False)
    log.abandon()
    return log


OUTCOMES = {"asked": "unknown", "read": "unknown", "late": "not-started", "none": "not-started"}


@pytest.mark.parametrize(
    ("world", "outcome", "synthetic"),
    [
        (Found(done=True, content="paid", external_id="42"), "done", False),
        (Found(done=False), "not-started", True),
        (None, "unknown", True),
    ],
)
def test_each_call_gets_its_one_outcome(tmp_path: Path, world: Found | None, outcome: str, synthetic: bool) -> None:
    """By what the log and the world can prove; the world is asked of keyed calls alone."""
    interrupted(tmp_path)
    asked: list[str] = []

    def ask(pending: Pending) -> Found | None:
        asked.append(pending.call_id)
        return world

    before = segment(tmp_path).read_bytes()
    with opened(tmp_path, ask=ask) as log:
        added = log.records[-7:]
    assert segment(tmp_path).read_bytes().startswith(before)
    assert [record.type for record in added] == ["writer/start", *["tool/result"] * 5, "turn/end"]
    found = {record.data["call_id"]: record.data for record in added[1:-1]}
    assert {name: data["outcome"] for name, data in found.items()} == {**OUTCOMES, "keyed": outcome}
    assert list(found) == ["asked", "read", "keyed", "late", "none"]
    assert (found["keyed"]["synthetic"], found["keyed"].get("external_id")) == (synthetic, world and world.external_id)
    assert added[-1].data == {"turn": 1, "synthetic": True, "reason": "interrupted"}
    assert asked == ["keyed"]


def test_a_crash_in_the_middle_of_a_repair_changes_nothing(tmp_path: Path) -> None:
    """Cut behind each of its records the next opening adds what is missing: one result per call, in the same order."""
    interrupted(tmp_path)
    before, promise = segment(tmp_path).read_bytes(), mark(tmp_path).read_bytes()
    opened(tmp_path).close()
    repaired = segment(tmp_path).read_bytes()
    added = repaired[len(before) :].splitlines(keepends=True)
    for count in range(len(added) + 1):
        for half in (b"", *(line[:50] for line in added[count : count + 1])):
            segment(tmp_path).write_bytes(before + b"".join(added[:count]) + half)
            mark(tmp_path).write_bytes(promise)
            with opened(tmp_path) as log:
                results = [record for record in log.records if record.type == "tool/result"]
                ends = [record for record in log.records if record.type == "turn/end"]
            outcomes = {record.data["call_id"]: record.data["outcome"] for record in results}
            assert len(results) == len(outcomes) == 6
            assert outcomes == {**OUTCOMES, "done": "done", "keyed": "unknown"}
            assert len(ends) == 1


def test_without_a_mark_nothing_is_known_not_to_have_begun(tmp_path: Path) -> None:
    """A call beyond the last known promise may have run; and behind cut bytes a call without a record, too."""
    interrupted(tmp_path)
    mark(tmp_path).write_bytes(b"\0" * 64)
    outcomes = {event.call_id: event.outcome for event in inspect(tmp_path, NAME).repairs[:-1]}  # type: ignore[attr-defined]  # all but the last are results
    assert (outcomes["late"], outcomes["none"]) == ("unknown", "not-started")
    with segment(tmp_path).open("ab") as file:
        file.write(b'{"v":1,"seq"')
    outcomes = {event.call_id: event.outcome for event in inspect(tmp_path, NAME).repairs[:-1]}  # type: ignore[attr-defined]  # as above
    assert outcomes["none"] == "unknown"


def test_an_inspection_changes_no_byte(tmp_path: Path) -> None:
    """It tells what an opening would do, of a directory that nobody may write to as well."""
    interrupted(tmp_path)
    with segment(tmp_path).open("ab") as file:
        file.write(b"torn")
    before = files(tmp_path)
    folder = segment(tmp_path).parent
    folder.chmod(0o500)
    try:
        found = inspect(tmp_path, NAME)
    finally:
        folder.chmod(0o700)
    assert files(tmp_path) == before
    assert [event.TYPE for event in found.repairs] == [*["tool/result"] * 5, "turn/end"]
    with opened(tmp_path) as log:
        told = [record.data for record in log.records[-6:]]
    assert told == [event.data() for event in found.repairs]


def test_what_a_kill_left_unpromised_is_written_anew(tmp_path: Path) -> None:
    """And what was promised is not: its file stays."""
    noted(tmp_path, 1)
    inode = segment(tmp_path).stat().st_ino
    opened(tmp_path).close()
    assert segment(tmp_path).stat().st_ino == inode
    log = opened(tmp_path)
    log.add(Note(note={"n": 2}))
    log.abandon()
    opened(tmp_path).close()
    assert segment(tmp_path).stat().st_ino != inode


def test_temporary_files_of_the_dead_are_removed(tmp_path: Path) -> None:
    """Nobody reads them; the one who holds the lease clears them away."""
    noted(tmp_path, 1)
    left = segment(tmp_path).parent / "seg-000001.jsonl.ab12.tmp"
    left.write_bytes(b"half")
    opened(tmp_path).close()
    assert not left.exists()


def test_a_refused_opening_gives_the_lease_back(tmp_path: Path) -> None:
    """And holds no file open: the next attempt meets the same refusal, not a lock."""
    noted(tmp_path, 1)
    segment(tmp_path).write_bytes(b"")
    for _ in range(3):
        with pytest.raises(Exception, match="promised"):
            opened(tmp_path)
    assert open_below(tmp_path) == []


def test_what_an_opening_holds_is_seen(tmp_path: Path) -> None:
    """The test above can fail."""
    with opened(tmp_path):
        assert open_below(tmp_path) != []
    assert open_below(tmp_path) == []


def test_any_id_is_one_folder(tmp_path: Path) -> None:
    """No id leads out of the root, and no two ids into one folder."""
    ids = ["a/b", "a%2Fb", "..", ".", "A", "a", "é", "a b"]
    for each in ids:
        open_log(tmp_path, each, Opening()).close()
    assert len(list(tmp_path.iterdir())) == len(ids)
    assert all(inspect(tmp_path, each).records[0].data["session_id"] == each for each in ids)


def test_the_grammar_of_a_reader_is_that_of_the_writer(tmp_path: Path) -> None:
    """State for state, whether the records were written or read."""
    with opened(tmp_path) as log:
        whole_turn(log, "a")
        begin(log)
        answer(log, "b")
        call(log, "b")
        written = vars(log.grammar) | {}
        read = vars(inspect(tmp_path, NAME).grammar)
        assert {**written, "fence": 0} == {**read, "fence": 0}
        assert set(written) == set(vars(Grammar()))


def put_back(root: Path, earlier: dict[str, bytes]) -> None:
    """All files but the lease as they were; what was not there then is removed."""
    for name in files(root).keys() - {"lease"}:
        (segment(root).parent / name).unlink()
    for name in earlier.keys() - {"lease"}:
        (segment(root).parent / name).write_bytes(earlier[name])


def test_a_log_that_was_put_back_is_known_by_its_lease(tmp_path: Path) -> None:
    """All but the lease is of an earlier moment, the mark too: what was promised to a later writer is gone."""
    noted(tmp_path, 1)
    earlier = files(tmp_path)
    noted(tmp_path, 2)
    noted(tmp_path, 3)
    put_back(tmp_path, earlier)
    before = files(tmp_path)
    for attempt in (opened, lambda root: inspect(root, NAME)):
        with pytest.raises(LogDamaged, match="record 3 of 4 that are promised"):
            attempt(tmp_path)
    assert files(tmp_path) == before
    with patch("longrun.eventlog.scan.promised_before", return_value=NOTHING):  # nothing else tells
        assert inspect(tmp_path, NAME).report == []


def test_a_lease_that_tells_of_a_log_is_no_new_session(tmp_path: Path) -> None:
    """Log and mark are both gone. Where nothing had been promised, as before the first record, it is a new one."""
    opened(tmp_path).close()
    put_back(tmp_path, {})
    opened(tmp_path).close()
    opened(tmp_path).close()
    put_back(tmp_path, {})
    before = files(tmp_path)
    for attempt in (opened, lambda root: inspect(root, NAME)):
        with pytest.raises(LogDamaged, match="the log that the lease tells of"):
            attempt(tmp_path)
    assert files(tmp_path) == before


def test_what_the_last_writer_was_promised_itself_the_lease_cannot_tell(tmp_path: Path) -> None:
    """The bound of it: a log that was put back, with its mark, to a moment of its last opening, is taken."""
    with opened(tmp_path) as log:
        log.add(Note(note={"n": 1}))
        log.barrier()
        earlier = files(tmp_path)
        log.add(Note(note={"n": 2}))
    put_back(tmp_path, earlier)
    assert inspect(tmp_path, NAME).records[-1].data == {"n": 1}


@pytest.mark.parametrize("pair", [(7, 90), (90, 7)])
def test_a_lease_of_before_it_noted_anything_is_read(tmp_path: Path, pair: tuple[int, int]) -> None:
    """Two fences side by side: neither is taken for a promise, the higher one counts, and is not written over."""
    noted(tmp_path, 1)
    lease = segment(tmp_path).parent / "lease"
    old = b"".join(map(slot_of, pair))
    lease.write_bytes(old)
    assert inspect(tmp_path, NAME).promised == 2
    with opened(tmp_path) as log:
        assert log.fence == 91
    assert lease.read_bytes() == old + slot_of(91) + slot_of(2, NOTED)
    assert promised_before(lease.parent) == 2


def test_a_reader_beside_writers_is_never_ahead_of_what_it_read(tmp_path: Path) -> None:
    """While it reads the log, one writer ends and another comes, who notes more than there was."""
    noted(tmp_path, 1)

    class Slow(Grammar):
        """Its first record takes so long that two writers come and go."""

        def advance(self, record: Record | Draft) -> None:
            super().advance(record)
            if self.seq == 1:
                noted(tmp_path, 2)
                noted(tmp_path, 3)

    how = Opening(design=replace(DESIGN, reader=Reader(grammar=Slow)))
    assert inspect(tmp_path, NAME, how).records[-1].data == {"n": 1}
    assert promised_before(segment(tmp_path).parent) > 2


def test_a_session_whose_name_could_not_be_made_durable_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a failed sync a second one may save nothing: so the next opening makes a new name."""
    synced: list[Path] = []

    def fails_once(directory: Path) -> None:
        synced.append(directory)
        if len(synced) == 1:
            raise OSError(5, "Input/output error")

    monkeypatch.setattr("longrun.eventlog.opening.sync_directory", fails_once)
    with pytest.raises(OSError, match="Input/output"):
        open_log(tmp_path, "s")
    assert list(tmp_path.iterdir()) == []
    open_log(tmp_path, "s").close()
    assert synced == [tmp_path, tmp_path]


def test_a_name_that_a_dead_process_has_made_is_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may have died before it did that itself; a session that has begun is not synced again."""
    synced: list[Path] = []
    monkeypatch.setattr("longrun.eventlog.opening.sync_directory", synced.append)
    (tmp_path / "s").mkdir()
    for _ in range(2):
        open_log(tmp_path, "s").close()
    assert synced == [tmp_path]
