"""What drill torn-or-damaged calls right is what the reader of the log in lesson 7 makes of the same files."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from crashcourse.drills.torn import DAMAGE, DRILL, SESSION, TAIL, WHOLE, lines, read, states
from crashcourse.two_readers import NO_MARK
from longrun.eventlog.errors import LogDamaged, LogUnsupported
from longrun.eventlog.scan import Reader
from longrun.eventlog.segments import MARK_NAME, segment_path
from longrun.eventlog.slots import fresh

if TYPE_CHECKING:
    from pathlib import Path

SEED = 3


def by_the_log(directory: Path, text: str, mark: int | None) -> list[object]:
    """Its verdict, and how many records are good; None where it refuses and tells no number."""
    segment_path(directory, 0).write_bytes(text.encode("latin-1"))
    (directory / MARK_NAME).write_bytes(NO_MARK if mark is None else fresh(mark))
    try:
        scan = Reader().read(directory)
    except (LogDamaged, LogUnsupported):  # a bit of the version makes it one of a newer program
        return [DAMAGE, None]
    return [TAIL if scan.tail else WHOLE, len(scan.records)]


@pytest.mark.parametrize("case", ["cuts", "lost", "damage"])
def test_the_log_reads_each_state_alike(tmp_path: Path, case: str) -> None:
    """All of them; where it refuses, the number is the drill's own."""
    directory = tmp_path / SESSION
    directory.mkdir()
    told = 0
    for state in states(SEED)[case]:
        text, mark = json.loads(state.given)
        verdict, good = read(text, mark)
        expected = [verdict, None if verdict == DAMAGE else good]
        assert by_the_log(directory, text, mark) == expected, state.place
        told += 1
    assert told > 40


def test_each_naive_reader_is_wrong_somewhere() -> None:
    """And right on what is whole."""
    whole = "".join(line + "\n" for line in lines(SEED))
    given = [json.loads(state.given) for some in states(SEED).values() for state in some]
    for name, functions in DRILL.naive.items():
        naive = functions["read"]
        assert naive(whole, 5) == [WHOLE, 6], name
        assert any(naive(*each) != read(*each) for each in given), name
