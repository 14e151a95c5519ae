"""The command: what it prints is what the course promises, and every mistake is told with the way out."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from crashcourse import cli
from crashcourse.catalog import MARK, find

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_first_hour(capsys: pytest.CaptureFixture[str], here: Path) -> None:
    """Start, check, hint, mend, check: each step says what comes next, and the list remembers."""
    assert cli.main(["start", "unbreakable-save"]) == 0
    assert capsys.readouterr().out == (
        f"created  work/unbreakable-save/exercise.py   2 {MARK}\nnext     crashcourse check unbreakable-save\n"
    )
    task = (here / "work/unbreakable-save/TASK.md").read_text()
    assert task.startswith("# 2.2 A save that no crash breaks\n\nWrite `save(dir, state)`")
    assert cli.main(["check", "2.2"]) == 1
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == "VIOLATION  unbreakable-save  6/100, private twins not run"
    assert shown[1].split() == ["end", "consistent", "1", "run"]
    assert shown[-1] == "  next    crashcourse hint unbreakable-save"
    assert any(line.startswith("  lost  kill@") for line in shown)
    assert all(line.isascii() and len(line) <= 110 for line in shown)
    assert cli.main(["hint", "unbreakable-save"]) == 0
    assert capsys.readouterr().out == "hint 1 of 3 (where to look): Never touch the good file.\n"
    work = here / "work" / "unbreakable-save" / "exercise.py"
    work.write_text((find("2.2").folder / "solution" / "exercise.py").read_text())
    assert cli.main(["check", "unbreakable-save"]) == 0
    assert capsys.readouterr().out.startswith("CONSISTENT  unbreakable-save  100/100, private twins not run\n")
    assert cli.main(["list"]) == 0
    assert "   2.2 unbreakable-save   code     2 h     done     100/100\n" in capsys.readouterr().out


def test_the_finding_of_a_check_is_replayed(capsys: pytest.CaptureFixture[str]) -> None:
    """The printed line leads to the same state."""
    from crashlab.cli import main as crashlab  # noqa: PLC0415 - the other command

    cli.main(["start", "unbreakable-save"])
    cli.main(["check", "unbreakable-save"])
    (line,) = (line for line in capsys.readouterr().out.splitlines() if line.startswith("  replay  crashlab "))
    assert crashlab(line.split()[2:]) == 1
    assert "kill@" in capsys.readouterr().out


def test_nothing_is_overwritten(capsys: pytest.CaptureFixture[str], here: Path) -> None:
    """A second start leaves the learner's file as it is, and says what to do."""
    cli.main(["start", "2.2"])
    (here / "work/unbreakable-save/exercise.py").write_text("mine")
    assert cli.main(["start", "2.2"]) == 64
    assert "is there already; go on with it, or move it away" in capsys.readouterr().err
    assert (here / "work/unbreakable-save/exercise.py").read_text() == "mine"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["check", "2.2"], "begin with: crashcourse start unbreakable-save"),
        (["check", "9.9"], "there is no exercise '9.9'"),
        (["check", "2.2", "--file", "nowhere.py"], "nowhere.py is not a plain file"),
    ],
)
def test_a_mistake_is_told_with_the_way_out(
    arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """And the command leaves with 64."""
    assert cli.main(arguments) == 64
    assert told in capsys.readouterr().err


def test_a_file_that_cannot_be_imported_loses_its_first_case(capsys: pytest.CaptureFixture[str], here: Path) -> None:
    """With the line that is wrong; nothing else could be judged."""
    (here / "mine.py").write_text("def save(dir, state)\n")
    assert cli.main(["check", "2.2", "--file", "mine.py", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["status"], found["points"]) == ("fail", 0)
    verdicts = {case["id"]: case["verdict"] for case in found["cases"]}
    assert verdicts.pop("end") == "violation"
    assert set(verdicts.values()) == {"unmeasured"}
    assert "mine.py:1" in found["cases"][0]["message"]
    assert not (here / "work").exists()


def test_every_hint_is_shown_once_and_the_last_again(capsys: pytest.CaptureFixture[str]) -> None:
    """As JSON too."""
    numbers = []
    for _ in range(4):
        assert cli.main(["hint", "2.2", "--json"]) == 0
        numbers.append(json.loads(capsys.readouterr().out)["number"])
    assert numbers == [1, 2, 3, 3]
