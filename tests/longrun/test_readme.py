"""The page of longrun is true: each defect has its module and its test, each module stands on the map."""

from __future__ import annotations

import re
from pathlib import Path

from tests.quality.capstone_agents import PLANTED as CAPSTONE
from tests.quality.effects_agents import EFFECTS
from tests.quality.naive_agents import PLANTED

ROOT = Path(__file__).parents[2]
HERE = ROOT / "lab/longrun"
PAGE = (HERE / "README.md").read_text()
ROWS = [[cell.strip() for cell in row.split("|")[1:-1]] for row in re.findall(r"^\| \d+ \|.*\|$", PAGE, re.MULTILINE)]
MODULES = {
    **{name: planted.module for name, planted in (PLANTED | EFFECTS).items()},
    **{name: planted.module for name, planted in CAPSTONE.items()},
}
"""By the name of its row in the tables of planted faults."""
TESTS = {path: path.read_text() for path in (ROOT / "tests").rglob("test_*.py")}


def test_there_are_nineteen_defects() -> None:
    """Numbered as they were found."""
    assert [int(row[0]) for row in ROWS] == list(range(1, 20))


def test_each_has_a_module_or_is_said_to_come() -> None:
    """A module that is named is there, is naive, and stands in the row of the test that is named for it."""
    for number, _, module, found_by in ROWS:
        named = [each for each in re.findall(r"`([^`]+)`", module) if "/" in each]
        assert bool(named) != module.startswith("coming"), number
        for each in named:
            assert (HERE / f"{each}.py").is_file(), each
        if rows := re.findall(r'"([^"]+)"', found_by):
            modules = [MODULES[row].__name__ for row in rows]
            assert [f"longrun.{each.replace('/', '.')}" for each in named] == modules, number


def test_each_test_that_is_named_is_there() -> None:
    """By its name, in one file; and whatever has a module has a test."""
    for number, _, module, found_by in ROWS:
        names = re.findall(r"`(test_\w+)`", found_by)
        assert module.startswith("coming") or names or '"' in found_by, number
        for name in names:
            assert sum(f"def {name}(" in text for text in TESTS.values()) == 1, name


def test_every_module_is_on_the_map() -> None:
    """The table names each module and folder of the agent, and none that is not there."""
    table = PAGE.split("| module | is |")[1].split("\n\n")[0]
    listed = {name for row in table.splitlines()[2:] for name in re.findall(r"`([^`]+)`", row.split("|")[1])}
    there = {f"{path.name}/" if path.is_dir() else path.stem for path in HERE.iterdir() if path.suffix != ".md"}
    assert listed == there - {"__init__", "__main__", "__pycache__/", "py"}


def _falls_to_a_kill(name: str) -> bool:
    """Whether it is one of those of lesson 4 that the page tells of together."""
    rows = [planted for planted in EFFECTS.values() if planted.module.__name__.endswith(f".{name}")]
    return not rows or (rows[0].faults == "kill" and not rows[0].hidden_by_careful)


def test_every_naive_module_is_told_of() -> None:
    """Each is named on the page, or is one of a folder of which the page says what finds it."""
    naive = {path.stem for path in HERE.rglob("naive_*.py") if path.parent.name == "checkpoint"}
    naive |= {path.stem for path in HERE.rglob("naive_*.py") if not _falls_to_a_kill(path.stem)}
    assert {name for name in naive if f"`{name}`" not in PAGE} == set()
