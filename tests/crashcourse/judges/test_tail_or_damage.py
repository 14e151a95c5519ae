"""The judge of exercise 7.1: truths that are measured, hostile answers, and a witness that needs its twin."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import pytest

from crashcourse import catalog
from crashcourse.judges import tail_or_damage
from crashcourse.marking import mark
from crashcourse.two_readers import DAMAGE, TAIL, WHOLE, logs, readers, verdict_of
from longrun.eventlog.slots import fresh

if TYPE_CHECKING:
    from pathlib import Path

    from crashcourse.result import Result

EXERCISE = catalog.find("tail-or-damage")
SOLUTION = (EXERCISE.folder / "solution" / EXERCISE.file).read_text()


def marked(text: str, folder: Path, case: str) -> Result:
    """The result of these answers on one case."""
    file = folder / EXERCISE.file
    file.write_text(text)
    return mark(EXERCISE, file, cases=frozenset({case}), out=folder / "runs")


@pytest.mark.parametrize("seed", [1, 7])
def test_a_promise_turns_a_tail_into_damage(seed: int, tmp_path: Path) -> None:
    """Each verdict is there, and the mark alone decides between two of one log."""
    verdicts = {}
    for name, (log, file) in logs(seed).items():
        (tmp_path / name).mkdir()
        verdicts[name] = verdict_of(log, file, tmp_path / name)
    assert set(verdicts.values()) == {WHOLE, TAIL, DAMAGE}
    for name, promised in (("b", 5), ("d", 5), ("h", 5)):
        (tmp_path / f"{name}2").mkdir()
        assert verdicts[name] == TAIL
        assert verdict_of(logs(seed)[name][0], fresh(promised), tmp_path / f"{name}2") == DAMAGE


@pytest.mark.parametrize("text", ["", "[other]\n", "logs = [\n", "x = " + "{x = " * 2_000])
def test_what_is_no_answer_loses_and_is_told(text: str, tmp_path: Path) -> None:
    """No answer is an error of the judge."""
    result = marked(text, tmp_path, "logs")
    assert (result.status, result.points) == ("fail", 0)
    first = result.rows[0]
    assert first.message or (first.finding and first.finding.found.endswith("is missing"))


@pytest.mark.parametrize(
    ("before", "after", "case", "told"),
    [
        ('d = "tail"', 'd = "torn"', "logs", "logs.d is 'torn'; expected 'whole' or 'tail' or 'damage'"),
        ('d = "tail"', 'd = "damage"', "logs", "d = damage"),
        ("power@28-28d0", "kill@28", "ninth", "a power loss is named as in"),
        ("power@28-28d0", "power@28-28d0/kill@3", "ninth", "power@28-28d0/kill@3"),
        ('state = "power@28-28d0"', "state = 28", "ninth", "expected a short text"),
    ],
)
def test_each_mistake_is_told_where_it_is(before: str, after: str, case: str, told: str, tmp_path: Path) -> None:
    """It loses its case, with the key or with what was measured."""
    assert SOLUTION.count(before) == 1
    (row,) = marked(SOLUTION.replace(before, after), tmp_path, case).rows
    assert row.verdict == "violation"
    assert row.finding is not None
    assert told in row.finding.found


def test_a_witness_needs_its_twin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the reader that is right goes wrong too, the power loss says nothing about the last line."""
    _, naive = readers(1)
    monkeypatch.setattr(tail_or_damage, "readers", lambda _seed: (dataclasses.replace(naive, name="twin"), naive))
    (row,) = marked(SOLUTION, tmp_path, "ninth").rows
    assert row.verdict == "violation"
    assert row.finding is not None
    assert "correct: lost" in row.finding.found


def test_the_truth_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Were the reader another one, other answers would be right."""
    monkeypatch.setattr(tail_or_damage, "verdict_of", lambda *_: WHOLE)
    (row,) = marked(SOLUTION, tmp_path, "logs").rows
    assert dict(row.verdicts) == {"consistent": 2, "violation": 6}
