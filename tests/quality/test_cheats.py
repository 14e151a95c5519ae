"""Every cheat of the table gets no points in the case that it touches, leaves nothing, and stops nothing.

Each is a planted submission for the exercise 2.2. What a file needs besides its own lines it asks for in a
comment: the solution, the starter, the values of the public seed, a file beside it.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from crashcourse import catalog
from crashcourse.grading import batch, housing
from crashcourse.grading.roster import Submission
from crashcourse.grading.shelf import Shelf
from crashcourse.judges import saves
from crashcourse.marking import PUBLIC_SEED

FOLDER = Path(__file__).parent / "cheats"
EXERCISE = catalog.find("unbreakable-save")
ISOLATION, WHY_NO_BETTER = housing.find()
SECRET = b"a secret of these tests"


@dataclass(frozen=True)
class Cheat:
    """One row of the table: the cases that it touches, and the verdicts that they may come to."""

    number: int
    cases: tuple[str, ...]
    verdicts: tuple[str, ...] = ("violation",)
    guest_only: bool = False

    @property
    def file(self) -> Path:
        (found,) = FOLDER.glob(f"{self.number:02}_*.py")
        return found


CHEATS = [
    Cheat(1, ("end",)),
    Cheat(2, ("kill",)),
    Cheat(3, ("kill",)),
    Cheat(4, ("kill",)),
    Cheat(5, ("kill",)),
    Cheat(6, ("kill",)),
    Cheat(7, ("end",)),
    Cheat(8, ("kill",)),
    Cheat(9, ("end",)),
    Cheat(10, ("end",)),
    Cheat(11, ("end",), guest_only=True),
    Cheat(12, ("kill",)),
    Cheat(13, ("damage",)),
    Cheat(14, ("kill",)),
    Cheat(15, ("kill",), ("unmeasured",)),
    Cheat(16, ("kill",), ("violation", "unmeasured")),
    Cheat(17, ("end",)),
    Cheat(18, ("kill",), ("violation", "unmeasured")),
    Cheat(19, ("damage",), ("violation", "unmeasured")),
    Cheat(20, ("kill",), ("violation", "unmeasured")),
    Cheat(21, ("damage",)),
    Cheat(22, ("power",), ("violation", "unmeasured")),
]


def text_of(file: Path) -> str:
    """The submission: its own lines, with what it asks for."""
    known = json.dumps(saves.states(PUBLIC_SEED)).replace("\\", "\\\\")
    texts = {name: (EXERCISE.folder / name / EXERCISE.file).read_text() for name in ("solution", "starter")}
    text = file.read_text().replace("# + known", known)
    for name, part in texts.items():
        text = re.sub(rf"^( *)# \+ {name}$", lambda found: _indented(part, found[1]), text, flags=re.MULTILINE)  # noqa: B023 - used at once
    return text


def _indented(text: str, space: str) -> str:
    return "\n".join(f"{space}{line}" if line else line for line in text.splitlines())


def judged(cheat: Cheat, out: Path) -> dict:
    """The whole result, on the cases that the cheat touches."""
    plan = batch.Plan(
        shelf=Shelf(out, SECRET), isolation=ISOLATION, hidden=housing.hidden(out), cases=cheat.cases, limit_s=120
    )
    plan.shelf.prepare()
    submission = Submission(student="somebody", exercise=EXERCISE, data=text_of(cheat.file).encode())
    (graded,) = batch.grade(plan, [submission], lambda _: None)
    return dict(graded.whole)


@pytest.mark.parametrize("cheat", CHEATS, ids=lambda cheat: cheat.file.stem)
def test_a_cheat_gets_nothing(cheat: Cheat, tmp_path: Path) -> None:
    """No points in what it touches, for the stated reason; the judge itself is never what fails."""
    if cheat.guest_only and ISOLATION == "same-user":
        pytest.skip(f"a limit on processes needs a user of its own: run the tests as root ({WHY_NO_BETTER})")
    before = set(os.listdir("/proc"))
    whole = judged(cheat, tmp_path)
    assert not whole["error"], whole["error"]
    for case in cheat.cases:
        rows = [row for row in whole["cases"] if row["id"] == case]
        assert {row["points"] for row in rows} == {0}, whole
        assert rows[-1]["verdict"] in cheat.verdicts, whole
    assert whole["status"] != "pass"
    assert before  # see the processes below
