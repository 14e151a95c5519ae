"""Exercise 3.1's judge: of each directory one way is right, and it is the lab that says so; answers that are none."""

from __future__ import annotations

import re
import tomllib
from typing import TYPE_CHECKING

import pytest

from crashcourse import catalog
from crashcourse.forced import BRANCHES
from crashcourse.judges import ways_back
from crashcourse.judges.ways_back import PLACES
from crashcourse.marking import mark

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from crashcourse.result import Result

EXERCISE = catalog.find("ways-back")
SOLUTION = (EXERCISE.folder / "solution" / EXERCISE.file).read_text()
RIGHT = {name: table.get("branch") for name, table in tomllib.loads(SOLUTION).items()}


def marked(text: str, folder: Path, cases: Sequence[str] = ()) -> Result:
    """The result of the solution, changed."""
    file = folder / EXERCISE.file
    file.write_text(text)
    return mark(EXERCISE, file, cases=frozenset(cases) or None, out=folder / "runs")


def with_branch(name: str, branch: str) -> str:
    """The solution with another way for one directory, or the same for all."""
    where = rf'(\[{name}\]\nbranch = )"\w+"'
    text, times = re.subn(where, rf'\1"{branch}"', SOLUTION)
    assert times
    return text


@pytest.mark.parametrize("branch", BRANCHES)
def test_each_directory_has_one_way_back(branch: str, tmp_path: Path) -> None:
    """The same way for all nine: it gets the points of those directories for which it is right, and no others."""
    result = marked(with_branch(r"d\d", branch), tmp_path, [f"branch.{name[1:]}" for name in PLACES])
    right = {f"branch.{name[1:]}" for name in PLACES if RIGHT[name] == branch}
    assert {row.id for row in result.rows if row.verdict == "consistent"} == right, result.to_json()
    assert right


def test_without_the_other_crash_a_wrong_way_looks_right(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The judge sabotaged: of two crashes that leave one directory only the one before the act is looked at."""
    whole = ways_back.states_of
    monkeypatch.setattr(ways_back, "states_of", lambda scene, place: [min(whole(scene, place), key=lambda s: s.done)])
    assert marked(with_branch("d5", "run"), tmp_path, ["branch.5"]).status == "pass"
    monkeypatch.undo()
    assert marked(with_branch("d5", "run"), tmp_path, ["branch.5"]).status == "fail"


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        ('point = "turn5.tool1.effect+"', 'point = "turn9.tool1.effect+"', "no crash point of this run"),
        ("call = 1", "call = 0", "call"),
        ('kind = "duplicate-effect"', 'kind = "duplicate"', "kind"),
        ('kind = "duplicate-effect"', 'kind = "stuck"', "violation duplicate-effect"),
        ('call = 1\nbranch = "run"', 'call = 1\nbranch = "unknown"', "consistent"),
    ],
    ids=["no point", "no call", "no kind", "another kind", "the right way"],
)
def test_a_witness_that_is_none_is_told(before: str, after: str, found: str, tmp_path: Path) -> None:
    """With what is wrong about it."""
    assert SOLUTION.count(before) == 1
    (row,) = marked(SOLUTION.replace(before, after), tmp_path, ["witness"]).rows
    assert row.verdict == "violation"
    assert row.finding is not None
    assert found in row.finding.found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("d1 = 7\n" + SOLUTION.replace("[d1]", "[d1x]"), "d1x"),
        (SOLUTION + "\n[d10]\nbranch = 'run'\n", "d10"),
        ("[d1\n", "d1"),
    ],
    ids=["another table", "one more", "no TOML"],
)
def test_answers_that_cannot_be_read_lose_the_first_case(text: str, found: str, tmp_path: Path) -> None:
    """With the key, or the place."""
    result = marked(text, tmp_path)
    assert (result.rows[0].id, result.rows[0].verdict) == ("branch.1", "violation")
    assert found in result.rows[0].message


def test_another_type_loses_its_case_alone(tmp_path: Path) -> None:
    """A list where a text is wanted."""
    result = marked(with_branch("d1", "run").replace('branch = "run"', "branch = [1]", 1), tmp_path, ["branch.1"])
    (row,) = result.rows
    assert row.finding is not None
    assert "d1.branch" in row.finding.found
