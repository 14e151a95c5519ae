"""The catalog: what is there is whole, and a folder that is not is refused with the key that is wrong."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from crashcourse import catalog
from crashlab.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

SLUG = "unbreakable-save"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of one exercise, to be broken."""
    return shutil.copytree(catalog.find(SLUG).folder, tmp_path / SLUG)


def test_an_exercise_is_found_by_slug_and_by_number() -> None:
    """Both lead to the same one, which knows its lesson."""
    assert catalog.find(SLUG) == catalog.find("2.2")
    assert (catalog.find(SLUG).lesson, catalog.find(SLUG).case("kill").points) == (2, 20)


def test_a_misspelt_name_is_told_with_the_right_one() -> None:
    """And with the command that shows all of them."""
    with pytest.raises(UsageError, match=r"did you mean .unbreakable-save.*crashcourse list"):
        catalog.find("unbreakable-sav")


def test_all_exercises_come_in_the_order_of_the_course() -> None:
    """By their numbers, not by their names; each once."""
    numbers = [tuple(map(int, each.number.split("."))) for each in catalog.exercises()]
    assert numbers == sorted(set(numbers))


@pytest.mark.parametrize(
    ("file", "old", "new", "told"),
    [
        ("exercise.toml", "points = 20", "points = 21", "101; expected 100"),
        ("exercise.toml", 'id = "race"', 'id = "kill"', "case ids"),
        ("exercise.toml", 'kind = "code"', 'kind = "essay"', "code or explain"),
        ("exercise.toml", 'in_place = "kill"', 'in_place = "kil"', "unbreakable-save.in_place is 'kil'"),
        ("exercise.toml", 'in_place = "kill"', 'in_plaace = "kill"', "wrong/in_plaace/exercise.py is not there"),
        ("exercise.toml", 'effort = "2 h"', 'efort = "2 h"', "did you mean 'effort'"),
        ("exercise.toml", 'effort = "2 h"', "", "effort is missing"),
        ("exercise.toml", 'starter = ["kill"]', 'starter = ["kil"]', "unbreakable-save.starter is 'kil'"),
        ("text.en.toml", '"Never touch the good file."', '""', "expected 3 texts"),
        ("text.en.toml", "title =", "title", "text.en.toml:1"),
    ],
)
def test_a_broken_folder_is_refused_by_name(file: str, old: str, new: str, told: str, folder: Path) -> None:
    """Every rule of the folder, broken alone, is told with its key."""
    text = (folder / file).read_text()
    assert text.count(old) == 1
    (folder / file).write_text(text.replace(old, new))
    with pytest.raises(UsageError) as caught:
        catalog.read(folder)
    assert told in str(caught.value)


def test_the_unbroken_copy_is_read(folder: Path) -> None:
    """The twin of all refusals."""
    assert catalog.read(folder).cases == catalog.find(SLUG).cases
