"""Exercise 5.1: each scene has one right tool by measurement, each demand can fail, and hostile programs are told."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from crashcourse import catalog, four_scenes
from crashcourse.four_scenes import DEMANDS, SCENES, TOOLS, Scene, best, fails
from crashcourse.marking import mark
from crashlab.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from crashcourse.result import Row

EXERCISE = catalog.find("four-scenes")
RIGHT = ["resume", "resume", "rewind", "rewind", "fork", "fork", "git", "git"]


@pytest.mark.parametrize("seed", [1, 7])
def test_each_scene_has_one_right_tool(seed: int) -> None:
    """Two scenes for each of the four; the others break a wish."""
    assert [best(scene, seed) for scene in SCENES.values()] == RIGHT
    with pytest.raises(LookupError, match="4 tools"):
        best(Scene(("until 4", "tool"), ("no act twice",)), seed)


def test_each_demand_holds_somewhere_and_fails_somewhere() -> None:
    """So none of them is for show."""
    steps = [*(scene.steps for scene in SCENES.values()), ("edit", "commit", "kill in the mail", "tool")]
    broken = [set(fails(Scene(each, DEMANDS, 4), tool, 1)) for each in steps for tool in TOOLS if "wish" not in each]
    broken += [set(fails(Scene(each, DEMANDS, 3), tool, 1)) for each in steps for tool in TOOLS if "wish" in each]
    for demand in DEMANDS:
        assert 0 < sum(demand in each for each in broken) < len(broken), demand


def test_a_mail_that_nobody_noted_is_sent_twice_only_by_who_leaves_the_head() -> None:
    """The open call of the head is what tells that it may have been sent."""
    scene = Scene(("kill in the mail", "tool"), ("no act twice",), 4)
    assert [fails(scene, tool, 1) for tool in TOOLS] == [[], ["no act twice"], [], []]


def test_a_scene_without_a_right_tool_is_the_judges_mistake(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rewind that forgets to add its copy: no tool is right any more where one has second thoughts."""
    monkeypatch.setattr(four_scenes.Store, "rewind", lambda *_: None)
    with pytest.raises(LookupError, match="0 tools"):
        best(SCENES["second_thoughts"], 1)


@pytest.mark.parametrize(
    ("steps", "text"),
    [
        (("jump", "tool"), "there is no step 'jump'"),
        (("until 9", "tool"), "there is no step 'until 9'"),
        (("finish", "kill at turn 2", "tool"), "has come to its end before"),
        (("tool",), "no point at the end of turn 3"),
    ],
)
def test_a_step_that_cannot_be_is_told(steps: tuple[str, ...], text: str) -> None:
    """By its words, and by what was tried."""
    with pytest.raises(UsageError, match=text):
        fails(Scene(steps, ("no act twice",)), "rewind", 1)


def judged(directory: Path, old: str, new: str) -> dict[str, Row]:
    """The rows of the solution with one change."""
    text = (EXERCISE.folder / "solution" / EXERCISE.file).read_text()
    assert old in text
    file = directory / EXERCISE.file
    file.write_text(text.replace(old, new))
    return {row.id: row for row in mark(EXERCISE, file, out=directory).rows}


@pytest.mark.parametrize(
    ("old", "new", "case", "said"),
    [
        ('[power_cut]\ntool = "resume"', '[power_cut]\ntool = "undo"', "scenes", "power_cut.tool"),
        ('[power_cut]\ntool = "resume"', "[power_cut]\ntool = 7", "scenes", "power_cut.tool"),
        ('second = "rewind"', 'second = "resume"', "program.1", "not the second-best"),
        ('"kill in the mail", "tool"', '"kill in the mail"', "program.1", "one step that is 'tool'"),
        ('"kill in the mail", "tool"', '"kill in the mail", "tool", 7', "program.1", "program1.steps"),
        ('"no act twice"]', '"no act thrice"]', "program.1", "program1.demands"),
        ("turn = 4", 'turn = "4"', "program.1", "program1.turn"),
        ('scene = "both_ways"', 'scene = "power_cut"', "program.2", "both programs are about scenes for resume"),
        ('"until 4", "wish"', '"until 40", "wish"', "program.2", "until 40"),
    ],
)
def test_an_answer_that_is_none_loses_its_case_and_is_told(
    tmp_path: Path, old: str, new: str, case: str, said: str
) -> None:
    """And no other case."""
    rows = judged(tmp_path, old, new)
    assert [name for name, row in rows.items() if row.verdict == "violation"] == [case]
    finding = rows[case].finding
    assert finding is not None
    assert said in finding.found


def test_an_unknown_table_is_told(tmp_path: Path) -> None:
    """With the names that are known."""
    rows = judged(tmp_path, "[program1]", "[program9]")
    assert rows["scenes"].verdict == "violation"
    assert "program9" in rows["scenes"].message
