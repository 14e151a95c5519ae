"""Who handed in what: both layouts, and everything that is neither."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from crashcourse import catalog
from crashcourse.grading.roster import roster
from crashcourse.marking import LARGEST_BYTES
from crashlab.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

EXERCISE = catalog.find("unbreakable-save")


def hand_in(folder: Path, *names: str, data: bytes = b"x") -> None:
    folder.joinpath(*names).parent.mkdir(parents=True, exist_ok=True)
    folder.joinpath(*names).write_bytes(data)


def test_one_exercise(tmp_path: Path) -> None:
    """A folder per student holds the file; a missing one is a submission with a problem, and so counts."""
    hand_in(tmp_path, "ann", "exercise.py")
    hand_in(tmp_path, "bob", "other.py")
    hand_in(tmp_path, "cat", EXERCISE.slug, "exercise.py", data=b"y")
    found = roster(tmp_path, [EXERCISE], EXERCISE)
    assert [(each.student, each.data) for each in found.submissions] == [("ann", b"x"), ("bob", b""), ("cat", b"y")]
    assert "is not a plain file" in found.submissions[1].problem


def test_all_exercises(tmp_path: Path) -> None:
    """A folder per exercise within that of the student; what has no such name is told."""
    hand_in(tmp_path, "ann", EXERCISE.slug, "exercise.py")
    hand_in(tmp_path, "ann", "nonsense", "exercise.py")
    hand_in(tmp_path, "notes.txt")
    hand_in(tmp_path, ".git", "config")
    found = roster(tmp_path, [EXERCISE], None)
    assert [each.owner for each in found.submissions] == [f"ann/{EXERCISE.slug}"]
    assert list(found.left_out) == [
        "ann/nonsense: there is no such exercise",
        "notes.txt: no plain folder of a student",
    ]


def test_links_are_not_followed(tmp_path: Path) -> None:
    """A link instead of a folder, of a file, or of the folder of an exercise leads nowhere."""
    hand_in(tmp_path, "elsewhere", "exercise.py")
    folder = tmp_path / "in"
    hand_in(folder, "ann", "note.txt")
    (folder / "ann" / "exercise.py").symlink_to(tmp_path / "elsewhere" / "exercise.py")
    (folder / "bob").symlink_to(tmp_path / "elsewhere")
    found = roster(folder, [EXERCISE], EXERCISE)
    assert [(each.student, each.data) for each in found.submissions] == [("ann", b"")]
    assert list(found.left_out) == ["bob: no plain folder of a student"]


def test_a_file_that_is_too_large_is_a_problem(tmp_path: Path) -> None:
    """It is told with both numbers, and never read into a judge."""
    hand_in(tmp_path, "ann", "exercise.py", data=b"x" * (LARGEST_BYTES + 1))
    (found,) = roster(tmp_path, [EXERCISE], EXERCISE).submissions
    assert found.problem.endswith("a submission has at most 1,048,576")


def test_nothing_at_all_is_misuse(tmp_path: Path) -> None:
    """Grading no submission would be a pass for nobody that looks like one for all."""
    with pytest.raises(UsageError, match="no submission was found; expected <student>/<exercise>/<file>"):
        roster(tmp_path, [EXERCISE], None)
    with pytest.raises(UsageError, match="is no folder"):
        roster(tmp_path / "gone", [EXERCISE], None)
