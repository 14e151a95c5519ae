"""Cheats beyond the table: each gets no points in what it touches, leaves nothing, and is no failure of the judge."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from crashlab import Store, explore
from tests.quality import test_cheats as table

FOLDER = Path(__file__).parent / "further_cheats"


@dataclass(frozen=True)
class Further(table.Cheat):
    """A cheat of the folder beside."""

    @property
    def file(self) -> Path:
        (found,) = FOLDER.glob(f"{self.number:02}_*.py")
        return found


CHEATS = [
    Further(23, ("kill",), told="null"),
    Further(24, ("end",), ("unmeasured",), told="the submission has disturbed it", guest_only=True),
    Further(25, ("end",), told="without any crash"),
    Further(26, ("end",), table.EITHER, guest_only=True),
]


@pytest.mark.skipif(sys.platform != "linux", reason="as for the table: the grader's fences are Linux's")
@pytest.mark.parametrize("cheat", CHEATS, ids=lambda cheat: cheat.file.stem)
def test_a_cheat_gets_nothing(cheat: Further, tmp_path: Path) -> None:
    """As each of the table."""
    if cheat.guest_only and table.ISOLATION == "same-user":
        pytest.skip(f"it ends the grading where it is the same user: run the tests as root ({table.WHY_NO_BETTER})")
    before = table.left_behind()
    whole = table.judged(cheat, tmp_path)
    assert not whole["error"], whole["error"]
    for case in cheat.cases:
        row = [row for row in whole["cases"] if row["id"] == case][-1]
        assert (row["points"], row["verdict"] in cheat.verdicts) == (0, True), whole
        assert cheat.told in json.dumps([row["message"], row["finding"]]), row
    assert table.still_left(table.left_behind() - before) == set()


def test_each_is_planted() -> None:
    """And none besides."""
    assert {cheat.file for cheat in CHEATS} == set(FOLDER.glob("*.py"))


def save(directory: Path, value: int) -> None:
    """In place."""
    (directory / "value").write_text(f"{value}")


def load_known(directory: Path) -> int | None:
    """Wrong: where the file says nothing, what the recorded run has acked, found in the frames of this process."""
    path = directory / "value"
    if not path.exists():
        return None
    return int(path.read_text() or _acked_by_frames())


def _acked_by_frames() -> int:
    frame = sys._getframe()
    while frame.f_back is not None:
        frame = frame.f_back
        for value in frame.f_locals.values():
            for each in (value, *getattr(value, "__dict__", {}).values()):
                ops = getattr(each, "ops", ())
                acks = [op.value for op in ops if type(op).__name__ == "Ack"] if isinstance(ops, tuple) else []
                if acks:
                    return int(acks[0])
    message = "nothing is known"
    raise LookupError(message)


IN_PLACE = Store(save, load_known, values=[1, 2], name="frames")


def test_the_recorded_run_stands_in_no_frame(tmp_path: Path) -> None:
    """The torn file of the second save is a loss, though a process above had the trace when it was forked."""
    report = explore(IN_PLACE, faults="kill", out=tmp_path, jobs=1)
    assert report.findings[0].kind == "lost"
    assert "nothing is known" in report.findings[0].summary
