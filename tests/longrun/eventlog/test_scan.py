"""Tests of longrun.eventlog.scan: torn or damaged, forked, unsupported; what is never taken for a torn tail."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pytest

from longrun.eventlog.errors import LogDamaged, LogUnsupported
from longrun.eventlog.events import Note
from longrun.eventlog.opening import inspect
from longrun.eventlog.segments import segment_numbers, segment_path
from tests.longrun.eventlog.sessions import NAME, directory, files, mark, noted, numbers_of, opened, segment
from tests.longrun.eventlog.stored import next_line, put, summed

if TYPE_CHECKING:
    from pathlib import Path


def refuses(root: Path, kind: str) -> LogDamaged:
    """Opening and inspecting both refuse, in the same words, and touch nothing."""
    before = files(root)
    with pytest.raises(LogDamaged) as told:
        inspect(root, NAME)
    with pytest.raises(LogDamaged) as again:
        opened(root)
    assert str(told.value) == str(again.value)
    assert files(root) == before
    assert told.value.kind == kind, str(told.value)
    return told.value


def test_a_line_without_its_end_is_kept(tmp_path: Path) -> None:
    """The record is whole; the opening ends the line, so that nothing is glued to it."""
    lines = noted(tmp_path, 1, 2)
    put(tmp_path, *lines[:-1], lines[-1].rstrip(b"\n"))
    assert inspect(tmp_path, NAME).report == ["the last line has no end"]
    with opened(tmp_path) as log:
        log.add(Note(note={"n": 3}))
        assert numbers_of(log) == [1, 2, 3]
    assert segment(tmp_path).read_bytes().startswith(b"".join(lines))


@pytest.mark.parametrize("tail", [b'{"v":1,"se', b"\0" * 300, b'{"v":1}\n', b"garbage\nmore", b"\n\n"])
def test_what_nobody_was_promised_is_cut_off_and_kept_apart(tmp_path: Path, tail: bytes) -> None:
    """The next record is not glued to it, and whoever wants may look at it."""
    lines = noted(tmp_path, 1)
    put(tmp_path, *lines, tail)
    report = inspect(tmp_path, NAME).report
    assert report == [f"torn tail: {len(tail)} bytes behind record 2, promised to nobody"]
    with opened(tmp_path) as log:
        log.add(Note(note={"n": 2}))
    assert files(tmp_path)["torn-3.bin"] == tail
    with opened(tmp_path) as log:
        assert numbers_of(log) == [1, 2]


def test_two_torn_tails_at_one_place_are_both_kept(tmp_path: Path) -> None:
    """Of the second cut another file; the same bytes, as after a crash in the middle of a cut, are kept once."""
    lines = noted(tmp_path, 1)
    for tail in (b"first", b"second", b"second"):
        put(tmp_path, *lines, tail, promised=2)
        opened(tmp_path).close()
    torn = {name: data for name, data in files(tmp_path).items() if name.startswith("torn")}
    assert torn == {"torn-3.bin": b"first", "torn-3-1.bin": b"second"}


def test_whole_records_behind_a_hole_that_nobody_was_promised_are_a_torn_tail(tmp_path: Path) -> None:
    """A block of one batch never reached the disk, the blocks behind it did."""
    lines = noted(tmp_path, 1)
    lost, kept = next_line(lines[-1]), b""
    kept = next_line(lost)
    put(tmp_path, *lines, b"\0" * len(lost), kept)
    with opened(tmp_path) as log:
        assert numbers_of(log) == [1]


@pytest.mark.parametrize("at", range(4))
def test_a_promised_line_that_is_bad_is_damage(tmp_path: Path, at: int) -> None:
    """With segment, line, byte, what was expected and what was found; the mark alone is enough to know."""
    lines = noted(tmp_path, 1, 2)
    bad = lines[at][:40] + b"X" + lines[at][41:]
    put(tmp_path, *lines[:at], bad, *lines[at + 1 :])
    told = refuses(tmp_path, "bad-line")
    assert (told.segment, told.line, told.byte) == (0, at + 1, sum(map(len, lines[:at])))
    assert told.expected == f"record {at} of 3 that are promised"
    assert "does not fit its sum" in told.found


def test_promises_are_known_from_lines_behind_the_bad_one_too(tmp_path: Path) -> None:
    """A later line bears the mark of its time, so the mark file may be gone, and the hole is seen all the same."""
    lines = noted(tmp_path, 1, 2, 3)
    put(tmp_path, *lines[:2], b"\0" * len(lines[2]) + b"\n", *lines[3:])
    mark(tmp_path).unlink()
    refuses(tmp_path, "bad-line")


def test_a_log_that_ends_before_its_promise_is_damage(tmp_path: Path) -> None:
    """At any byte; a whole number of lines too."""
    lines = noted(tmp_path, 1, 2)
    put(tmp_path, *lines[:-1])
    refuses(tmp_path, "missing")
    put(tmp_path)
    refuses(tmp_path, "missing")
    segment(tmp_path).unlink()
    assert "the log that the mark tells of" in refuses(tmp_path, "missing").expected


@pytest.mark.parametrize("removed", range(4))
def test_a_hole_is_never_replayed(tmp_path: Path, removed: int) -> None:
    """Whether a number has never been, or is lost, nobody can tell; each other line is sound."""
    lines = noted(tmp_path, 1, 2, 3)
    put(tmp_path, *lines[:removed], *lines[removed + 1 :])
    refuses(tmp_path, "bad-line")


def test_a_number_that_is_given_twice_is_two_writers(tmp_path: Path) -> None:
    """Also where nothing of it was promised: no crash leaves this."""
    lines = noted(tmp_path, 1, 2)
    for stranger in (
        next_line(lines[1]),  # the number of the first note, from before it
        next_line(lines[2], data={"n": 7}),  # that of the second
        next_line(lines[3], prev="0" * 16),  # the next number, of another history
        next_line(lines[3], fence=0),
    ):
        put(tmp_path, *lines, stranger)
        refuses(tmp_path, "forked")


def test_the_last_line_once_more_is_cut_off(tmp_path: Path) -> None:
    """A tool that writes again what it has written; nothing can be lost by it."""
    lines = noted(tmp_path, 1, 2)
    put(tmp_path, *lines, lines[-1])
    with opened(tmp_path) as log:
        assert numbers_of(log) == [1, 2]


def test_a_line_in_a_wrong_place_is_damage(tmp_path: Path) -> None:
    """The next record, behind something that is none: a writer cuts before it appends."""
    lines = noted(tmp_path, 1, 2)
    put(tmp_path, *lines, b"half a rec\n", next_line(lines[-1]))
    refuses(tmp_path, "displaced")
    put(tmp_path, *lines, next_line(lines[-1], type="turn/end", data={"turn": 1, "synthetic": False, "reason": "x"}))
    refuses(tmp_path, "grammar")


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (b'{"v":1,', b'{"v":2,', "version 2"),
        (b'"format":1', b'"format":9', "format 9"),
    ],
)
def test_a_newer_log_is_not_damaged(tmp_path: Path, old: bytes, new: bytes, says: str) -> None:
    """It is another kind of refusal, and it leaves everything as it is."""
    lines = noted(tmp_path, 1)
    put(tmp_path, summed(lines[0], old, new), *lines[1:])
    before = files(tmp_path)
    for act in (lambda: inspect(tmp_path, NAME), lambda: opened(tmp_path)):
        with pytest.raises(LogUnsupported, match=says):
            act()
    assert files(tmp_path) == before


def test_an_unknown_type_may_be_passed_over_only_where_it_says_so(tmp_path: Path) -> None:
    """A projection might depend on it."""
    lines = noted(tmp_path, 1)
    put(tmp_path, *lines, next_line(lines[-1], type="mood", data={"x": 1}), promised=3)
    with opened(tmp_path) as log:
        assert [record.type for record in log.records[3:]] == ["mood", "writer/start"]
    put(tmp_path, *lines, next_line(lines[-1], type="mood", data={"x": 1}, ignorable=False), promised=3)
    with pytest.raises(LogUnsupported, match="unknown type 'mood'"):
        opened(tmp_path)


def test_without_a_mark_the_records_are_gone_by(tmp_path: Path) -> None:
    """It is said, and goes on; the new mark is whole."""
    noted(tmp_path, 1, 2)
    for spoil in (lambda: mark(tmp_path).unlink(), lambda: mark(tmp_path).write_bytes(b"\0" * 64)):
        spoil()
        assert inspect(tmp_path, NAME).report[0].startswith("weakened")
        with opened(tmp_path) as log:
            assert numbers_of(log) == [1, 2]
        assert inspect(tmp_path, NAME).report == []


def test_segments_have_no_gap_and_their_size(tmp_path: Path) -> None:
    """A sealed segment that is short, long, spoiled or gone is damage, never the end of the log."""
    with opened(tmp_path) as log:
        for n in range(3):
            log.add(Note(note={"n": n}))
            log.rotate(force=True)
    whole = files(tmp_path)
    middle = segment(tmp_path, 1)
    data = middle.read_bytes()
    for bad, kind in ((data[:-1], "segment"), (data[:-9], "segment"), (data + b"x", "segment"), (None, "missing")):
        middle.unlink()
        if bad is not None:
            middle.write_bytes(bad)
        refuses(tmp_path, kind)
    middle.write_bytes(data)
    assert files(tmp_path) == whole
    opened(tmp_path).close()


def test_an_empty_next_segment_is_what_a_crash_may_leave(tmp_path: Path) -> None:
    """It is removed, and the log goes on where it was."""
    noted(tmp_path, 1)
    segment(tmp_path, 1).touch()
    assert inspect(tmp_path, NAME).report == ["segment 1 is empty"]
    with opened(tmp_path) as log:
        assert (numbers_of(log), log.segment) == ([1], 0)
    assert not segment(tmp_path, 1).exists()


def test_segments_are_read_beyond_six_digits(tmp_path: Path) -> None:
    """A writer that pads and a reader that counts digits part at 1,000,000."""
    for number in (999_999, 1_000_000, 1_000_001):
        segment_path(tmp_path, number).touch()
    (tmp_path / "seg-12.jsonl").touch()  # nobody's
    assert segment_numbers(tmp_path) == [999_999, 1_000_000, 1_000_001]


def test_a_reader_beside_a_living_writer_sees_whole_records(tmp_path: Path) -> None:
    """At each byte of the line that is being written it reads what was there before, and says what it saw."""
    with opened(tmp_path) as log:
        log.add(Note(note={"n": 1}))
        log.barrier()
        sound = segment(tmp_path).read_bytes()
        line = next_line(sound.splitlines(keepends=True)[-1])
        for end in itertools.chain(range(0, len(line) - 1, 7), [len(line) - 2]):
            segment(tmp_path).write_bytes(sound + line[:end])
            found = inspect(tmp_path, NAME)
            assert found.records[-1].data == {"n": 1}
        segment(tmp_path).write_bytes(sound)
    assert directory(tmp_path).is_dir()
