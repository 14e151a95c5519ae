"""Exercise 2.3's judge: other right ways pass, what is no submission is told, and the answers are out of reach."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from crashcourse import catalog
from crashcourse.inside import Later
from crashcourse.inside_desk import SavePoints
from crashcourse.marking import mark
from crashlab import Subject, explore
from longrun.subjects import view

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from crashcourse.result import Result

EXERCISE = catalog.find("save-points")
SOLUTION = (EXERCISE.folder / "solution" / EXERCISE.file).read_text()
RAISE = """        response = desk.ask(state["messages"])
        if not complete(response):
            raise RuntimeError("half an answer: nothing of it may be saved; whoever started this resumes it")
"""
RETRY = """        response = {}
        while not complete(response):
            try:
                response = desk.ask(state["messages"])
            except ConnectionError:
                response = {}
            if not complete(response):
                state["requests_started"] += 1
                desk.save(state)
"""


def marked(text: str, cases: Sequence[str], folder: Path) -> Result:
    """The result of the solution, changed."""
    file = folder / EXERCISE.file
    file.write_text(text)
    return mark(EXERCISE, file, cases=frozenset(cases), out=folder / "runs")


def changed(before: str, after: str) -> str:
    """The solution with one part exchanged."""
    assert SOLUTION.count(before) == 1
    return SOLUTION.replace(before, after)


def test_asking_again_is_as_right_as_giving_up(tmp_path: Path) -> None:
    """Half an answer may be asked for again, if that request is counted; if not, it is missed."""
    counted = marked(changed(RAISE, RETRY), ("end", "stream"), tmp_path)
    assert counted.status == "pass", counted.to_json()
    uncounted = RETRY.replace('                state["requests_started"] += 1\n', "")
    lost = marked(changed(RAISE, uncounted), ("end", "stream"), tmp_path)
    (row,) = (row for row in lost.rows if row.verdict == "violation")
    assert row.finding is not None
    assert "1 requests more than requests_started" in row.finding.found


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (changed("def run(desk):", "def ran(desk):"), "has no attribute 'run'"),
        (SOLUTION.replace("desk.save(state)", "pass"), "the saved status is 'nothing was saved'"),
        (SOLUTION.replace("return\n        calls", "continue\n        calls"), "400 invalid_request_error"),
        (changed('"content": results}', '"content": results[:1]}'), "400 invalid_request_error"),
        (changed("text = desk.do(", 'desk.do(call["name"], call["input"])\n    text = desk.do('), "times more"),
        (changed('state["turns"] += 1', 'state["turns"] = "one"'), "state['turns'] is 'one'; expected int"),
        ("import longrun.resume.correct\n" + SOLUTION, "ImportError: longrun is not there for exercises"),
        (changed("    state = {", "    from crashcourse import desk as d\n    state = {"), "crashcourse is not there"),
        ("def run(desk)\n", "SyntaxError"),
    ],
    ids=["no run", "no save", "no end", "one result", "all twice", "odd state", "answers", "answers later", "broken"],
)
def test_a_run_that_fails_by_itself_is_told(text: str, message: str, tmp_path: Path) -> None:
    """It loses the case end, with the reason; nothing else is judged."""
    result = marked(text, ("end", "count"), tmp_path)
    assert {row.id: row.verdict for row in result.rows} == {"end": "violation", "count": "unmeasured"}
    assert message in result.rows[0].message


def test_who_resumes_never_loads_the_submission(tmp_path: Path) -> None:
    """What it would do to the agent at import is done in the recorded process alone: the marker stays out of others."""
    seen = tmp_path / "loaded"
    seen.touch()
    file = tmp_path / EXERCISE.file
    file.write_text(f"with open({str(seen)!r}, 'a') as marker:\n    marker.write('x')\n{SOLUTION}")
    points = SavePoints(Later(str(file), "run"), 0)
    subject = Subject(points.run, points.resume, check=points.check, view=view, outside=("*",))
    explore(subject, faults="kill", only="kill@20", out=tmp_path / "runs")
    assert seen.read_text() == "xx"  # a workload is recorded twice
