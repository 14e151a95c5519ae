"""The command ``grade``: its last line, its exit code, its files, and every misuse told with the way out."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

from crashcourse import cli
from crashcourse.adapters import FORMATS

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def submissions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two students: one has handed in no Python, one nothing."""
    monkeypatch.chdir(tmp_path)
    for name, text in (("ann", "def ("), ("bob", None)):
        (tmp_path / "in" / name).mkdir(parents=True)
        if text is not None:
            (tmp_path / "in" / name / "exercise.py").write_text(text)
    return tmp_path / "in"


def secret() -> str:
    reader, writer = os.pipe()
    os.write(writer, b"secret")
    os.close(writer)
    return str(reader)


def test_a_batch(submissions: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """0 when grading worked, whatever the verdicts; progress is on stderr; a second run judges nothing."""
    arguments = ["grade", str(submissions), "--exercise", "2.2", "--csv", "grades.csv"]
    assert cli.main([*arguments, "--seed-fd", secret(), "--formats", ",".join(FORMATS)]) == 0
    shown = capsys.readouterr()
    assert shown.out == "GRADED  2: 0 pass, 1 fail, 1 incomplete, 0 judge-error\n"
    assert "ann/unbreakable-save  fail  0/100\n" in shown.err
    lines = (tmp_path / "grades.csv").read_text().splitlines()
    assert [line.split(",")[:5] for line in lines[1:]] == [
        ["ann", "fail", "0", "6", "100"],
        ["bob", "incomplete", "0", "0", "100"],
    ]
    files = {each.name for each in (tmp_path / "results/ann/unbreakable-save").iterdir()}
    assert files == {"result.json", "public.json", "seal"} | {form.file for form in FORMATS.values()}
    assert cli.main([*arguments, "--seed-fd", secret(), "--json"]) == 0
    again = capsys.readouterr()
    form = json.loads(again.out)
    assert form["counts"] == {"pass": 0, "fail": 1, "incomplete": 1, "judge-error": 0}
    assert [each["student"] for each in form["graded"]] == ["ann", "bob"]
    assert again.err.count("(judged before)") == 2


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--exercise", "nonsense"], "there is no exercise 'nonsense'"),
        (["--formats", "pdf"], "--formats pdf: known are exercism, gradescope, junit, markdown"),
        (["--seed-fd", "9999"], "open it: crashcourse grade FOLDER --seed-fd 3 3< SECRET"),
        ([], "no submission was found"),
    ],
)
def test_misuse_is_told(submissions: Path, arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    """64, and nothing was begun."""
    one = [] if "--exercise" in arguments or not arguments else ["--exercise", "2.2"]
    assert cli.main(["grade", str(submissions), *one, *arguments]) == 64
    assert told in capsys.readouterr().err
    assert not (submissions.parent / "results").exists()
