"""A learner gets through the course with what its commands print, and with nothing else.

The learner is ``programs/learner.py``, which can be run by hand. One exercise is played in the quick profile; all of
them, in an environment that holds the installed package alone, in the full one.
"""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING

import pytest

from crashcourse import catalog
from tests.exercises.programs.learner import Learner, Lost, play
from tests.packaging.conftest import ROOT, build
from tests.packaging.fresh import Fresh

if TYPE_CHECKING:
    from pathlib import Path

CHEAPEST = "loss-inventory"
COURSE = """\
import json, pathlib, sys
words = " ".join(sys.argv[1:])
count = pathlib.Path("typed").read_text().splitlines().count(words) if pathlib.Path("typed").exists() else 0
with open("typed", "a") as file: print(words, file=file)
code, text = json.loads(pathlib.Path("course.json").read_text())[words][count]
print(text)
sys.exit(code)
"""
"""A course of one exercise that answers what it is told to, in turn."""
REPLIES: dict[str, list[tuple[int, str]]] = {
    "list": [
        (0, "L1 One\n   1.1 one                explain  30 min  -"),
        (0, "L1 One\n   1.1 one                explain  30 min  done     100/100  model answer seen"),
    ],
    "start one": [(0, "created  mine   1 left to do")],
    "check one": [(1, "VIOLATION  one  0/100\n  kinds  violation      1 of 1 states"), (0, "CONSISTENT  one  100/100")],
    "hint one": [(0, f"hint {number} of 3 (where to look): look") for number in (1, 2, 3)],
    "hint one --model": [(0, "the answer")],
}


def played(folder: Path, **changed: list[tuple[int, str]]) -> float:
    """The course as it should be, but for the replies to these words."""
    replies = {
        **REPLIES,
        **{words.replace("_", " ").replace(" model", " --model"): each for words, each in changed.items()},
    }
    (folder / "course.json").write_text(json.dumps(replies))
    return play(Learner([sys.executable, "-S", "-E", "-c", COURSE], folder), say=lambda _: None)


def test_the_script_goes_by_what_is_printed(tmp_path: Path) -> None:
    """It types each command in its turn, and writes the model answer into the file that start named."""
    assert played(tmp_path) == 100
    assert (tmp_path / "mine").read_text() == "the answer\n"
    assert (tmp_path / "typed").read_text().splitlines() == [
        "list",
        "start one",
        "check one",
        "hint one",
        "hint one",
        "hint one",
        "hint one --model",
        "check one",
        "list",
    ]


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"list": [(0, "nothing")]}, "does not show any exercise"),
        ({"start_one": [(0, "created")]}, "names no file"),
        ({"check_one": [(0, "CONSISTENT  one  100/100")] * 2}, "left with 0, not 1"),
        ({"check_one": [(1, "VIOLATION  one  0/100")] * 2}, "names no case"),
        ({"check_one": [REPLIES["check one"][0]] * 2}, "left with 1, not 0"),
        ({"hint_one": [(0, "hint 1 of 3 (where to look): look")] * 3}, "does not give hint 2"),
        ({"hint_one_model": [(64, "")]}, "left with 64, not 0"),
    ],
)
def test_a_course_that_does_not_lead_on_is_noticed(
    changed: dict[str, list[tuple[int, str]]], told: str, tmp_path: Path
) -> None:
    """The script itself can fail: each step that goes wrong is told."""
    with pytest.raises(Lost, match=told):
        played(tmp_path, **changed)


def test_a_course_that_is_not_done_in_the_end_is_not_whole(tmp_path: Path) -> None:
    """The last word is the list's."""
    assert played(tmp_path, list=[REPLIES["list"][0], (0, "   1.1 one  explain  30 min  started   84/100")]) == 84


@pytest.mark.parametrize("slug", [CHEAPEST])
def test_one_exercise_is_learned(slug: str, tmp_path: Path) -> None:
    """Start, fail for the stated reason, three hints, the model answer, all points."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    learner = Learner([sys.executable, "-m", "crashcourse"], tmp_path, environment)
    told: list[str] = []
    assert play(learner, [slug], told.append) == 100
    assert told == [f"{slug}: lost {catalog.find(slug).starter[0]} at first, has all points now"]
    assert "100/100  model answer seen" in learner.types("list", code=0)


@pytest.mark.full
def test_the_whole_course_is_learned(tmp_path: Path) -> None:
    """All exercises, in an empty folder, with the package alone: two checks of each, which takes minutes."""
    pytest.importorskip("hatchling", reason="hatchling is not here: pip install hatchling")
    fresh = Fresh(tmp_path / "fresh", build(ROOT, tmp_path / "wheel", "wheel"), extra=[])
    folder = tmp_path / "empty"
    folder.mkdir()
    environment = {name: os.environ[name] for name in ("PATH", "TMPDIR") if name in os.environ}
    learner = Learner([str(fresh.bin / "crashcourse")], folder, {**environment, "HOME": str(folder)})
    told: list[str] = []
    assert play(learner, say=told.append) == 100
    assert [line.partition(":")[0] for line in told] == [each.slug for each in catalog.exercises()]
