"""The results folder: whole or not at all, sealed, and closed to others."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from crashcourse import catalog
from crashcourse.grading.roster import Submission
from crashcourse.grading.shelf import PUBLIC, SEAL, WHOLE, Shelf
from crashcourse.marking import seed_sha256, unjudged
from crashlab.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

EXERCISE = catalog.find("unbreakable-save")
ANN = Submission(student="ann", exercise=EXERCISE, data=b"x")
BOB = Submission(student="bob", exercise=EXERCISE, data=b"x")
SEED = 7


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    """A shelf that holds a result of ann's."""
    made = Shelf(tmp_path / "results", b"secret")
    made.prepare()
    result = unjudged(EXERCISE, ANN.data, SEED, message="no")
    made.put(ANN, result.to_json(), result.public().to_json())
    return made


def test_what_was_put_is_known(shelf: Shelf) -> None:
    """Under the same seed; under another, or for another file, it is none."""
    known = shelf.known(ANN, seed_sha256(SEED))
    assert known is not None
    assert known[0]["status"] == "incomplete"
    assert "private_sha256" not in known[1]["seeds"]
    assert shelf.known(ANN, seed_sha256(SEED + 1)) is None
    other = Submission(student="ann", exercise=EXERCISE, data=b"y")
    assert shelf.known(other, seed_sha256(SEED)) is None
    assert shelf.folder.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("part", [WHOLE, PUBLIC, SEAL])
def test_a_planted_result_is_none(shelf: Shelf, part: str) -> None:
    """Whoever has no secret cannot change a result, nor make one, nor take another's."""
    path = shelf.place(ANN) / part
    if part == SEAL:
        path.write_text("0" * 64)
    else:
        form = json.loads(path.read_text())
        path.write_text(json.dumps({**form, "points": 100, "status": "pass"}))
    assert shelf.known(ANN, seed_sha256(SEED)) is None


def test_a_result_of_another_student_is_none(shelf: Shelf) -> None:
    """A seal names its owner."""
    shelf.place(BOB).parent.mkdir()
    shelf.place(ANN).rename(shelf.place(BOB))
    assert shelf.known(BOB, seed_sha256(SEED)) is None


def test_what_lies_in_the_way_is_replaced(shelf: Shelf, tmp_path: Path) -> None:
    """A link that leads elsewhere is removed and not followed; what was half written is gone at the next start."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    shelf.place(BOB).parent.mkdir()
    shelf.place(BOB).symlink_to(elsewhere)
    result = unjudged(EXERCISE, BOB.data, SEED, message="no")
    shelf.put(BOB, result.to_json(), result.public().to_json())
    assert shelf.known(BOB, seed_sha256(SEED)) is not None
    assert not list(elsewhere.iterdir())
    half = shelf.folder / "ann" / ".being-written-0"
    half.mkdir()
    shelf.prepare()
    assert not half.exists()


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    """With the option that names it."""
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match=r"--out .*name a folder that can be written"):
        Shelf(tmp_path / "file" / "results", b"secret").prepare()
