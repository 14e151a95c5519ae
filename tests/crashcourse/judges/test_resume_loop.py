"""Exercise 3.2's judge: what is no submission is told, silence about damage is no refusal, other right ways pass."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from crashcourse import catalog
from crashcourse.marking import mark

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from crashcourse.result import Result

EXERCISE = catalog.find("resume-loop")
SOLUTION = (EXERCISE.folder / "solution" / EXERCISE.file).read_text()


def marked(text: str, cases: Sequence[str], folder: Path) -> Result:
    """The result of the solution, changed."""
    file = folder / EXERCISE.file
    file.write_text(text)
    return mark(EXERCISE, file, cases=frozenset(cases), out=folder / "runs")


def changed(before: str, after: str) -> str:
    """The solution with one part exchanged."""
    assert SOLUTION.count(before) == 1
    return SOLUTION.replace(before, after)


def test_a_waiting_run_is_finished_too(tmp_path: Path) -> None:
    """Where a person must decide, "waiting" is as right a status as "done": it is not gone on with."""
    waiting = changed(
        'state["status"] = "done"\n        state["end"] = {', 'state["status"] = "waiting"\n        _ = {'
    )
    result = marked(waiting, ("kill", "again"), tmp_path)
    assert result.status == "pass", result.to_json()


def test_to_go_on_with_a_finished_run_is_a_case_of_its_own(tmp_path: Path) -> None:
    """It loses that case by name, and no other: each time it has come to the right end before."""
    text = (EXERCISE.folder / "wrong" / "no_end" / EXERCISE.file).read_text()
    rows = {row.id: row for row in marked(text, ("kill", "once", "again"), tmp_path).rows}
    assert {name: row.verdict for name, row in rows.items()} == {
        "kill": "consistent",
        "once": "consistent",
        "again": "violation",
    }
    assert rows["again"].finding is not None
    assert rows["again"].finding.kind == "ran-again"


def test_to_say_nothing_about_damage_is_no_refusal(tmp_path: Path) -> None:
    """Who returns where the state cannot be read has neither refused nor come to the end."""
    quiet = changed(
        "state = desk.load()  # what is damaged raises, and is left as it lies",
        "try:\n        state = desk.load()\n    except Exception:\n        return",
    )
    (row,) = marked(quiet, ("damage",), tmp_path).rows
    assert row.verdict == "violation"
    assert row.finding is not None
    assert row.finding.kind == "accepted-damage"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (changed("def resume(desk):", "def go_on(desk):"), "has no attribute 'resume'"),
        ("def resume(desk):\n    pass\n", "no state that can be read is stored"),
        (changed('requests_started": 1,', 'requests_started": 0,'), "counts 1 requests less than there were"),
        (changed("for call in calls])\n\n\ndef close", "for call in calls[1:]])\n\n\ndef close"), "400"),
        (changed('"content": desk.do(call["name"], call["input"])}', '"content": "Well."}'), "expected"),
        ("import longrun\n" + SOLUTION, "longrun is not there for exercises"),
        ("def resume(desk)\n", "SyntaxError"),
        ("import os\n\n\ndef resume(desk):\n    os._exit(0)\n", "exit"),
    ],
    ids=["no resume", "nothing", "late count", "one result less", "nothing done", "answers", "broken", "exit"],
)
def test_a_run_that_fails_by_itself_is_told(text: str, message: str, tmp_path: Path) -> None:
    """It loses the first case, with the reason; nothing else is judged."""
    result = marked(text, ("kill", "count"), tmp_path)
    assert {row.id: row.verdict for row in result.rows} == {"kill": "violation", "count": "unmeasured"}
    assert message in result.rows[0].message
