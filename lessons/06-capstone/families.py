"""Lesson 6, the long part: one design for each family, and the whole harness, under every family. It takes minutes."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from crashcourse.exhibit import Exhibit, expect
from crashcourse.pictures import Cell, Picture, matrix
from crashcourse.pictures.matrix import cells_of
from crashlab import Budget, explore

if TYPE_CHECKING:
    from collections.abc import Iterator

    from crashcourse.exhibit import Data

FAMILIES = ("kill", "power", "error", "damage", "recovery", "race")
ASKED = "kill,power,error:ENOSPC,damage:empty,recovery,race"
SMALL = Budget(real_kills=1, nested=2, sample=0, subset=0, violations=1, time_s=900.0)
DESIGNS = {
    "longrun.checkpoint.naive_b_only:subject": "kill",
    "longrun.checkpoint.naive_no_fsync:subject": "power",
    "longrun.checkpoint.naive_swallow_enospc:subject": "error",
    "longrun.checkpoint.naive_none_on_error:subject": "damage",
    "longrun.resume.naive_unsaved_reconcile:subject": "recovery",
    "longrun.capstone.naive_no_lease:subject": "race",
    "longrun.capstone.correct:subject_hasty_short": "",
}
"""Each design, and the family that must find it."""


def measure(folder: Path) -> Data:
    """The cells of the matrix, and how many states each family has for the whole harness."""
    rows, states = {}, {}
    for subject, family in DESIGNS.items():
        report = explore(subject, faults=ASKED, profile="xfs", budget=SMALL, out=folder / "runs")
        fallen = [count.fault for count in report.faults if count.violation]
        expect(family in fallen if family else not fallen, True, f"{subject} falls to {family or 'nothing'}: {fallen}")  # noqa: FBT003 - an expected value
        expect([each.code for each in report.unmeasured], [], f"what was not measured of {subject}")
        rows[_name(subject)] = {fault: [cell.verdict, cell.kind] for fault, cell in cells_of(report).items()}
        states = {count.fault: count.judged for count in report.faults}
    return {"rows": rows, "states": states}


def _name(subject: str) -> str:
    module = subject.partition(":")[0].split(".")
    return f"{module[1]}/{module[2]}"


def tell(data: Data) -> Iterator[str]:
    """What is printed."""
    yield f"{'':31} {' '.join(f'{family:8}' for family in FAMILIES)}".rstrip()
    for name, row in data["rows"].items():
        words = " ".join(f"{Cell(*row[family]).word.split()[0]:8}" for family in FAMILIES)
        yield f"{name:31} {words}".rstrip()
    yield "\nThe kinds of violation:"
    for name, row in data["rows"].items():
        if kinds := dict.fromkeys(kind for verdict, kind in row.values() if verdict == "violation" and kind):
            yield f"  {name:31} {', '.join(kinds)}"
    yield "\nCrash states of the whole harness that were judged:"
    yield "  " + ", ".join(f"{fault} {count}" for fault, count in data["states"].items())


def pictures(data: Data) -> dict[str, Picture]:
    """The matrix."""
    return {"families": _matrix(data)}


def _matrix(data: Data) -> Picture:
    rows = {name: {fault: Cell(*cell) for fault, cell in row.items()} for name, row in data["rows"].items()}
    return matrix("One design for each family, and the whole harness", FAMILIES, rows)


exhibit = Exhibit(Path(__file__).parent, measure, tell, pictures, "families.json")

if __name__ == "__main__":
    sys.exit(exhibit.main())
