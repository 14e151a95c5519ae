"""The event log of longrun in the place of the cases that broke a log: each by its id, as a trial of one design.

A trial makes what the case tells of, and asserts what a log must do then. ``naive`` is a design, or a patch of the
correct one, that fails the trial. No lab is needed: what was met is known, to the byte.
"""

from __future__ import annotations

import os
import re
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import pytest

from longrun.eventlog import (
    naive_cut_after_turn_end,
    naive_glue_tail,
    naive_newer_is_broken,
    naive_no_seq_check,
    naive_pidfile,
    naive_skip_bad_line,
    project,
    segments,
)
from longrun.eventlog.design import DESIGN, Design
from longrun.eventlog.errors import LogBusy, LogDamaged, LogFenced, LogUnsupported
from longrun.eventlog.events import Note
from longrun.eventlog.log import EventLog
from longrun.eventlog.opening import Opening, inspect, open_log
from longrun.eventlog.scan import Reader, Scan
from longrun.eventlog.snapshot import write_snapshot
from tests.longrun.eventlog.sessions import NAME, directory, files, noted, numbers_of, segment, whole_turn

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager


@dataclass(frozen=True)
class Trial:
    """``stands(root, design)`` fails for ``naive``, or within ``spoiled()``, and then ``says`` by what."""

    stands: Callable[[Path, Design], None]
    says: str
    naive: Design = DESIGN
    spoiled: Callable[[], AbstractContextManager[Any]] = field(default=nullcontext)


def opened(root: Path, design: Design) -> EventLog:
    """The session, open."""
    return open_log(root, NAME, Opening(design=design, writer="w", clock=lambda: 0))


def add(log: EventLog, number: int) -> None:
    """One more note, promised."""
    log.append(Note(note={"n": number}))
    log.barrier()


def refuses(root: Path, design: Design, error: type[Exception] = LogDamaged) -> str:
    """Opening and inspection are refused, and no byte changes. Returns what is said."""
    before = {name: data for name, data in files(root).items() if name.startswith("seg-")}
    with pytest.raises(error):
        opened(root, design).close()
    with pytest.raises(error) as refused:
        inspect(root, NAME, Opening(design=design))
    assert before == {name: data for name, data in files(root).items() if name.startswith("seg-")}
    return str(refused.value)


# --- torn appends --------------------------------------------------------------------------------------


def append_behind_no_end(root: Path, design: Design) -> None:
    """The last line has lost its LF; what is appended then is a line of its own."""
    noted(root, 1, 2)
    segment(root).write_bytes(segment(root).read_bytes()[:-1])
    with opened(root, design) as log:
        add(log, 3)
    with opened(root, DESIGN) as log:
        assert numbers_of(log) == [1, 2, 3]


def append_behind_half_a_record(root: Path, design: Design) -> None:
    """A record was cut by a crash, and is written again by the next process."""
    lines = noted(root, 1, 2)
    with segment(root).open("ab") as file:
        file.write(lines[-1][:60])
    with opened(root, design) as log:
        add(log, 3)
    with opened(root, DESIGN) as log:
        assert numbers_of(log) == [1, 2, 3]


def retry_behind_a_part(root: Path, design: Design) -> None:
    """A write took a part and failed; the program tries again, on the same handle."""

    def part(descriptor: int, data: bytes) -> None:
        os.write(descriptor, data[:60])
        raise OSError(28, "No space left on device")

    with opened(root, design) as log:
        add(log, 1)
        with patch("longrun.eventlog.log.write_all", part), pytest.raises(OSError, match="No space"):
            add(log, 2)
        add(log, 2)
    with opened(root, DESIGN) as log:
        assert numbers_of(log) == [1, 2]


def a_tail_of_zeros(root: Path, design: Design) -> None:
    """The file had grown, its pages were never written: what was promised is listed, and can be gone on with."""
    noted(root, 1, 2)
    with segment(root).open("ab") as file:
        file.write(bytes(9 * 1024))
    found = inspect(root, NAME, Opening(design=design))
    assert [record.data["n"] for record in found.records if record.type == "note"] == [1, 2]
    assert "torn tail" in found.report[0]
    with opened(root, design) as log:
        add(log, 3)
    with opened(root, DESIGN) as log:
        assert numbers_of(log) == [1, 2, 3]


# --- readers -------------------------------------------------------------------------------------------


def damaged_line(root: Path, what: bytes) -> None:
    """The line with ``what`` in it is cut in half; its end stays."""
    lines = segment(root).read_bytes().splitlines(keepends=True)
    segment(root).write_bytes(b"".join(line[: len(line) // 2] + b"\n" if what in line else line for line in lines))


def a_call_on_a_damaged_line(root: Path, design: Design) -> None:
    """Its result stands on a good one: never sent, since all is refused."""
    with opened(root, DESIGN) as log:
        whole_turn(log, "c1")
    damaged_line(root, b"tool_use")
    refuses(root, design)


def damage_in_the_middle(root: Path, design: Design) -> None:
    """What follows is neither forgotten nor taken; the place is told."""
    noted(root, *range(9))
    damaged_line(root, b'{"n":4}')
    assert "line 7" in refuses(root, design)


def no_new_session_for_what_cannot_be_read(root: Path, design: Design) -> None:
    """A file of which nothing is understood is no absent one."""
    noted(root, 1)
    segment(root).write_bytes(segment(root).read_bytes().replace(b'{"v":1,', b'{"v":2,'))
    refuses(root, design, LogUnsupported)


def a_reader_beside_a_writer(root: Path, design: Design) -> None:
    """Half a record of a living writer is no damage, and nobody takes it away."""
    with opened(root, DESIGN) as log:
        add(log, 1)
        whole = segment(root).read_bytes()
        with segment(root).open("ab") as file:
            file.write(whole.splitlines()[-1][:60])
        before = files(root)
        found = inspect(root, NAME, Opening(design=design))
        assert [record.data["n"] for record in found.records if record.type == "note"] == [1]
        assert files(root) == before
        os.truncate(segment(root), len(whole))
        add(log, 2)


def an_error_is_not_an_empty_session(root: Path, design: Design) -> None:
    """The disk cannot be read just now."""
    noted(root, 1)

    def failing(*_: Any, **__: Any) -> None:
        raise OSError(5, "Input/output error")

    with patch.object(Path, "open", failing), pytest.raises(OSError, match="Input/output"):
        inspect(root, NAME, Opening(design=design))


def a_missing_batch(root: Path, design: Design) -> None:
    """A line of the middle was dropped: the hole is seen before anything is sent."""
    lines = noted(root, 1, 2, 3)
    segment(root).write_bytes(b"".join(lines[:3] + lines[4:]))
    refuses(root, design)


# --- an index ------------------------------------------------------------------------------------------


def an_index_of_zeros(root: Path, design: Design) -> None:
    """A snapshot is derived: it is told of, and made again from the log."""
    with opened(root, DESIGN) as log:
        whole_turn(log, "c1")
        write_snapshot(log)
        truth = project.messages(log.records)
    (snapshot,) = directory(root).glob("snap-*.json")
    snapshot.write_bytes(bytes(snapshot.stat().st_size))
    found = inspect(root, NAME, Opening(design=design))
    assert project.messages(found.records) == truth
    assert "is passed over" in found.report[0]


def one_digit_more(root: Path, _design: Design) -> None:
    """Segment 1,000,000 has a longer name, and comes behind the one before it."""
    for number in (1_000_000, 999_999, 1_000_001):
        segments.segment_path(root, number).touch()
    found = segments.segment_numbers(root)
    assert found == [999_999, 1_000_000, 1_000_001], f"read back: {found}"


# --- a number that is given twice ------------------------------------------------------------------------


def a_second_owner(root: Path, design: Design) -> None:
    """Nobody opens what another has open."""
    with opened(root, design), pytest.raises(LogBusy):
        opened(root, design)


def a_stale_writer(root: Path, design: Design) -> None:
    """It was taken over while it slept: it stops, and its record is nowhere."""
    stale = opened(root, design)
    add(stale, 1)
    (directory(root) / segments.LEASE_NAME).rename(root / "lost")  # its lock holds nobody off any more
    with opened(root, design) as log:
        add(log, 2)
        with pytest.raises(LogFenced):
            add(stale, 3)
        stale.abandon()
        assert numbers_of(log) == [1, 2]
    with opened(root, DESIGN) as log:
        assert numbers_of(log) == [1, 2]


def two_histories_in_one_file(root: Path, design: Design) -> None:
    """Two writers without a lock have both written record 3: each line is sound, and the second is refused."""
    lines = noted(root / "a", 1, 2)
    others = noted(root / "b", 1, 7)
    (root / "a" / NAME).rename(root / NAME)
    segment(root).write_bytes(b"".join([*lines, others[-1]]))
    refuses(root, design)


class Forgetful:
    """Wrong: a log that cannot be read now is one that never was."""

    def read(self, where: Path) -> Scan:
        try:
            return Reader().read(where)
        except OSError:
            return Scan(where)


def leave_as_it_is(_scan: Scan) -> None:
    """Wrong: the next record is written right behind whatever is there."""


TRIALS = {
    "SDK-RENAME-GLUE": Trial(append_behind_no_end, "does not fit its sum", replace(DESIGN, mend=leave_as_it_is)),
    "COP-4098": Trial(append_behind_half_a_record, "does not fit its sum", naive_glue_tail.DESIGN),
    "CODEX-24425": Trial(
        retry_behind_a_part,
        "this writer left",
        spoiled=lambda: patch.object(EventLog, "_take_back", lambda _: None),
    ),
    "CC-76059": Trial(a_tail_of_zeros, "does not fit its sum", naive_glue_tail.DESIGN),
    "CC-14132": Trial(a_call_on_a_damaged_line, "DID NOT RAISE", naive_skip_bad_line.CONDUCT.design),
    "CC-50347": Trial(damage_in_the_middle, "DID NOT RAISE", naive_cut_after_turn_end.DESIGN),
    "GEM-18593": Trial(no_new_session_for_what_cannot_be_read, "DID NOT RAISE", naive_newer_is_broken.DESIGN),
    "OPT-5138": Trial(a_reader_beside_a_writer, "bad-line", replace(DESIGN, reader=Reader(promise=lambda *_: 99))),
    "XAG-978": Trial(an_error_is_not_an_empty_session, "there is no session", replace(DESIGN, reader=Forgetful())),
    "SDK-DROP-BATCH": Trial(a_missing_batch, "DID NOT RAISE", naive_no_seq_check.DESIGN),
    "CC-79941": Trial(
        an_index_of_zeros,
        "no index, no session",
        spoiled=lambda: patch("longrun.eventlog.scan.load_snapshot", side_effect=RuntimeError("no index, no session")),
    ),
    "OH-3926": Trial(
        one_digit_more,
        "read back",
        spoiled=lambda: patch.object(segments, "_SEGMENT", re.compile(r"seg-(\d{6})\.jsonl")),
    ),
    "CC-75761": Trial(a_second_owner, "DID NOT RAISE", naive_pidfile.DESIGN),
    "ADK-4751": Trial(a_stale_writer, "DID NOT RAISE", naive_pidfile.DESIGN),
    "CC-81843": Trial(two_histories_in_one_file, "DID NOT RAISE", naive_no_seq_check.DESIGN),
}
"""By the id of the case: a torn append, a reader, an index, and a number that is given twice."""
