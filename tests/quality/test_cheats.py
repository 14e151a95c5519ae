"""Every cheat of the table gets no points in the case that it touches, leaves nothing, and stops nothing.

Each is a planted submission for the exercise 2.2. What a file needs besides its own lines it asks for in a
comment: the solution, the starter, the values of the public seed, a file beside it.
"""

from __future__ import annotations

import json
import os
import re
import select
import shutil
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from crashcourse import catalog
from crashcourse.grading import batch, housing
from crashcourse.grading.roster import Submission, roster
from crashcourse.grading.shelf import Shelf
from crashcourse.judges import saves
from crashcourse.marking import PUBLIC_SEED

FOLDER = Path(__file__).parent / "cheats"
EXERCISE = catalog.find("unbreakable-save")
ISOLATION, WHY_NO_BETTER = housing.find()
SECRET = b"a secret of these tests"
ENDING_LIMIT_S = 120.0


@dataclass(frozen=True)
class Cheat:
    """One row of the table: the cases that it touches, and the verdicts that they may come to."""

    number: int
    cases: tuple[str, ...]
    verdicts: tuple[str, ...] = ("violation",)
    told: str = ""
    name: str = ""
    limit_s: float = 120.0
    with_strace: bool = False
    guest_only: bool = False
    unshared_only: bool = False

    @property
    def file(self) -> Path:
        (found,) = FOLDER.glob(f"{self.number:02}_{self.name}*.py")
        return found


EITHER = ("violation", "unmeasured")
CHEATS = [
    Cheat(1, ("end",), told="exit code 0 and gave the lab no result"),
    Cheat(2, ("kill",), told="lost"),
    Cheat(3, ("kill",), told="lost"),
    Cheat(4, ("kill",), told="lost"),
    Cheat(5, ("kill",), told="lost", name="patches"),
    Cheat(5, ("power",), ("unmeasured",), told="strace sees another run", name="makes_up", with_strace=True),
    Cheat(6, ("kill",), told="lost"),
    Cheat(7, ("end",), told="nothing of the grader's can be read"),
    Cheat(8, ("kill",), told="lost"),
    Cheat(9, ("end",), told="without any crash"),
    Cheat(10, ("end",), ("unmeasured",), told="did not end within", limit_s=6.0),
    Cheat(11, ("end",), ("unmeasured",), told="did not end within", limit_s=6.0, guest_only=True),
    Cheat(12, ("kill",), told="left-process"),
    Cheat(13, ("damage",), told="evidence-destroyed"),
    Cheat(14, ("kill",), told="silent-reset"),
    Cheat(15, ("kill",), ("unmeasured",), told="nobody records", name="sees"),
    Cheat(15, ("power",), ("unmeasured",), told="strace sees another run", name="syncs", with_strace=True),
    Cheat(16, ("kill",), EITHER, unshared_only=True),
    Cheat(17, ("end",), told="File too large"),
    Cheat(18, ("kill",), EITHER, unshared_only=True),
    Cheat(19, ("damage",), ("unmeasured",), told="fails already"),
    Cheat(20, ("kill",), ("unmeasured",), told="nothing was written"),
    Cheat(21, ("damage",), told="silent-reset"),
    Cheat(22, ("power",), EITHER),
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


def handed_in(cheat: Cheat, folder: Path, marker: Path) -> Submission:
    """The submission as a folder of a student, with the files beside it; each of these would leave the marker."""
    student = folder / "somebody"
    student.mkdir(parents=True)
    text = text_of(cheat.file)
    (student / EXERCISE.file).write_text(text)
    for name in re.findall(r"^# \+ beside: (.*)$", text, flags=re.MULTILINE):
        line = f"open({str(marker)!r}, 'w').close()\n"
        (student / name).write_text(f"import os; {line}" if name.endswith(".pth") else line)
    (found,) = roster(folder, [EXERCISE], EXERCISE).submissions
    return found


def judged(cheat: Cheat, tmp_path: Path) -> dict[str, Any]:
    """The whole result, on the cases that the cheat touches."""
    submission = handed_in(cheat, tmp_path / "submissions", tmp_path / "marker")
    shelf = Shelf(tmp_path / "results", SECRET)
    shelf.prepare()
    hidden = housing.hidden(tmp_path)
    plan = batch.Plan(shelf=shelf, isolation=ISOLATION, hidden=hidden, cases=cheat.cases, limit_s=cheat.limit_s)
    (graded,) = batch.grade(plan, [submission], lambda _: None)
    assert {each.name for each in shelf.place(submission).iterdir()} == {"result.json", "public.json", "seal"}
    return dict(graded.whole)


def left_behind() -> set[str]:
    """Processes that a cheat would leave, and files where it would put them."""
    found = set()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            words = Path("/proc", pid, "cmdline").read_bytes().split(b"\0")
            user = os.stat(f"/proc/{pid}").st_uid
        except OSError:
            continue
        if b"987654" in words or housing.FIRST_USER <= user <= housing.LAST_USER:
            found.add(pid)
    places = [Path("/dev/shm"), Path("/var/tmp"), Path(tempfile.gettempdir())]
    for place in filter(Path.is_dir, places):
        found |= {str(path) for mark in ("*987654*", "planted-*") for path in place.glob(mark)}
    return found


def still_left(found: set[str]) -> set[str]:
    """What of it stays: processes of another grading on this machine are on their way, those of a cheat never end."""
    deadline = time.monotonic() + ENDING_LIMIT_S
    while found and time.monotonic() < deadline:
        select.select([], [], [], 0.1)
        found &= left_behind()
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="the table is proven on Linux: the grader's fences are Linux's")
@pytest.mark.parametrize("cheat", CHEATS, ids=lambda cheat: cheat.file.stem)
def test_a_cheat_gets_nothing(cheat: Cheat, tmp_path: Path) -> None:
    """No points in what it touches, for the stated reason; no process or file is left, and the judge does not fail."""
    if cheat.guest_only and ISOLATION == "same-user":
        pytest.skip(f"it is stopped by a user of its own: run the tests as root ({WHY_NO_BETTER})")
    if cheat.unshared_only and ISOLATION != "user+namespaces":
        pytest.skip(f"what it writes stays where there is no mount namespace ({WHY_NO_BETTER})")
    if cheat.with_strace and shutil.which("strace") is None:
        pytest.skip("only strace sees it: install strace")
    before = left_behind()
    whole = judged(cheat, tmp_path)
    assert not whole["error"], whole["error"]
    assert whole["status"] != "pass"
    for case in cheat.cases:
        rows = [row for row in whole["cases"] if row["id"] == case]
        assert {row["points"] for row in rows} == {0}, whole
        assert rows[-1]["verdict"] in cheat.verdicts, whole
        told = json.dumps([rows[-1]["message"], rows[-1]["finding"]])
        assert cheat.told in told, told
    assert not (tmp_path / "marker").exists()
    assert still_left(left_behind() - before) == set()


def test_the_solution_stays_clean_under_the_same_demands(tmp_path: Path) -> None:
    """What all these cheats are judged by is no demand that an honest submission fails."""
    honest = Submission(
        student="somebody", exercise=EXERCISE, data=(EXERCISE.folder / "solution" / EXERCISE.file).read_bytes()
    )
    shelf = Shelf(tmp_path / "results", SECRET)
    shelf.prepare()
    plan = batch.Plan(shelf=shelf, isolation=ISOLATION, hidden=housing.hidden(tmp_path), cases=("end", "kill"))
    (graded,) = batch.grade(plan, [honest], lambda _: None)
    assert {(row["id"], row["visibility"], row["verdict"]) for row in graded.whole["cases"]} == {
        (case, seed, "consistent") for case in ("end", "kill") for seed in ("public", "private")
    }, graded.whole
    assert graded.whole["isolation"] == ISOLATION


def test_every_row_of_the_table_is_planted() -> None:
    """Twenty-two cheats, each with its file, and none besides."""
    assert sorted({cheat.number for cheat in CHEATS}) == list(range(1, 23))
    assert {cheat.file for cheat in CHEATS} == set(FOLDER.glob("*.py"))
