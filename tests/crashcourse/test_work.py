"""The learner's folder: the model answer is given when it is due, whole, and not in secret."""

from __future__ import annotations

import json
import tomllib
from typing import TYPE_CHECKING

import pytest

from crashcourse import catalog, cli, progress
from crashcourse.catalog import HINTS, find
from crashcourse.progress import Standing
from crashcourse.work import POINTER, Work
from crashlab.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from crashcourse.catalog import Exercise

EVERY = catalog.exercises()


@pytest.mark.parametrize(
    ("standing", "told"),
    [
        (Standing(), "after the 3 hints: crashcourse hint unbreakable-save"),
        (Standing(hints=2, status="fail"), "after the 3 hints"),
        (Standing(hints=3), "after a try of your own: crashcourse check unbreakable-save"),
    ],
)
def test_the_model_answer_comes_last(standing: Standing, told: str, tmp_path: Path) -> None:
    """Neither before the hints nor before a try; what is missing is named, and nothing is kept."""
    progress.keep(tmp_path, "unbreakable-save", standing)
    with pytest.raises(UsageError, match=told):
        Work(tmp_path).model_answer(find("2.2"))
    assert progress.load(tmp_path)["unbreakable-save"] == standing


@pytest.mark.parametrize(("best", "seen"), [(6, True), (100, False)])
def test_that_it_was_seen_is_kept(best: int, seen: bool, tmp_path: Path) -> None:
    """Whoever had solved it before has solved it alone; the points are nobody's to change here."""
    status = "pass" if best == 100 else "fail"
    standing = Standing(points=best, best=best, status=status, hints=len(HINTS))
    progress.keep(tmp_path, "unbreakable-save", standing)
    Work(tmp_path).model_answer(find("2.2"))
    found = progress.load(tmp_path)["unbreakable-save"]
    assert (found.model_seen, found.best, found.hints) == (seen, best, 3)


@pytest.mark.parametrize("exercise", EVERY, ids=lambda exercise: exercise.slug)
def test_a_model_answer_is_the_whole_file(exercise: Exercise, tmp_path: Path) -> None:
    """It can be put into the learner's file as it is printed, on a terminal that knows ASCII alone."""
    progress.keep(tmp_path, exercise.slug, Standing(status="fail", hints=len(HINTS)))
    answer = Work(tmp_path).model_answer(exercise)
    solution = (exercise.folder / "solution" / exercise.file).read_text()
    comments = answer.removesuffix(solution)
    assert comments != answer
    assert all(line.startswith("# ") for line in comments.splitlines() if line)
    assert exercise.model.split()[0] in comments
    assert answer.isascii()
    if exercise.file.endswith(".toml"):
        assert tomllib.loads(answer) == tomllib.loads(solution)
    else:
        compile(answer, exercise.file, "exec")


@pytest.mark.parametrize("exercise", EVERY, ids=lambda exercise: exercise.slug)
def test_what_start_copies_says_where_the_task_is(exercise: Exercise, tmp_path: Path) -> None:
    """In its first line, and nothing else is changed."""
    file = Work(tmp_path).start(exercise)
    assert file.read_text() == POINTER + (exercise.folder / "starter" / exercise.file).read_text()
    assert (file.parent / "TASK.md").read_text().startswith(f"# {exercise.number} {exercise.title}\n")


def test_the_command_prints_it_as_text_and_as_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same text; before it is due, the command leaves with 64."""
    monkeypatch.chdir(tmp_path)
    assert cli.main(["hint", "2.2", "--model"]) == 64
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("crashcourse: the model answer comes after")
    work = tmp_path / "work"
    work.mkdir()
    progress.keep(work, "unbreakable-save", Standing(status="fail", hints=len(HINTS)))
    assert cli.main(["hint", "2.2", "--model"]) == 0
    text = capsys.readouterr().out
    assert cli.main(["hint", "2.2", "--model", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["schema"], told["file"], told["text"]) == ("crashcourse.model/1", "exercise.py", text)
    assert progress.load(work)["unbreakable-save"].hints == 3
