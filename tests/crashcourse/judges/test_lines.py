"""Exercise 5.2: what is demanded of lines is held against lines that break it, one demand after the other."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from crashcourse import catalog
from crashcourse.lines_found import FORK, MAIN, broken, digest, miscounted, points_of, unlike
from crashcourse.marking import mark

if TYPE_CHECKING:
    from pathlib import Path

EXERCISE = catalog.find("rewind-and-fork")


def point(seq: int, turns: int, **other: Any) -> dict[str, Any]:
    """A point of the main line, with what is said of it."""
    usual = {"seq": seq, "parent": seq - 1, "timeline": MAIN, "turns": turns, "status": "running", "messages": [turns]}
    done = {"status": "done"} if turns == 6 else {}
    return {**usual, "pending": [], "tokens_used": 10 * seq, "requests_started": seq, **done, **other}


def right() -> list[dict[str, Any]]:
    """The points of a run that went back and was forked."""
    back = {"messages": [4], "parent": 4}
    return [
        *(point(turn, turn) for turn in range(1, 7)),
        point(7, 4, timeline="main@7", **back),
        point(8, 6, timeline="main@7"),
        point(5, 4, timeline=FORK, tokens_used=80, requests_started=8, **back),
        point(6, 6, timeline=FORK, tokens_used=90, requests_started=9),
    ]


def files(points: list[dict[str, Any]]) -> dict[str, bytes]:
    """The points as files."""
    return {f"{number}.json": json.dumps(each).encode() for number, each in enumerate(points)}


def changed(number: int, **other: Any) -> list[dict[str, Any]]:
    """The right points, one of them changed."""
    points = right()
    points[number] = {**points[number], **other}
    return points


def told(points: list[dict[str, Any]], *, acts: tuple[str, ...] = ("a",), requests: int = 9) -> dict[str, str]:
    """What is wrong, by kind; what was promised are the right points."""
    promised = [digest(each) for each in right()]
    return {kind: text for kind, text in broken(files(points), promised, acts, requests).items() if text}


def test_right_lines_are_right() -> None:
    """Nothing is said of them, and a file that is none beside them is nothing."""
    assert told(right()) == {}
    assert points_of({"x.json": b"{", "y.json": b"[]", "z.json": b'{"timeline": "main"}'}).keys() <= {MAIN}


@pytest.mark.parametrize(
    ("points", "text"),
    [
        ([], "no point of the line 'main'"),
        (right()[:8], "no point of the line 'other'"),
        (changed(1, seq=1), "two points have one number"),
        (changed(7, status="running"), "newest point of main is running"),
        (changed(9, turns=5), "newest point of other is done at turn 5"),
        (changed(6, messages=[5]), "main: point 7 is no copy"),
        (changed(6, parent=3), "main: point 7 is no copy"),
        (changed(8, pending=[1]), "other: point 5 is no copy"),
        ([each for each in right() if "@" not in each["timeline"]], "no rewind has added one"),
    ],
)
def test_each_demand_on_the_lines_can_fail(points: list[dict[str, Any]], text: str) -> None:
    """By its own words."""
    assert text in unlike(points_of(files(points)))


@pytest.mark.parametrize(
    ("points", "text"),
    [
        (changed(6, tokens_used=40), "main: tokens_used fell from 60 to 40"),
        (changed(6, requests_started=4), "main: requests_started fell"),
        (changed(8, tokens_used=60), "the fork begins with 60 tokens_used"),
    ],
)
def test_each_demand_on_the_counters_can_fail(points: list[dict[str, Any]], text: str) -> None:
    """A refund, a forgotten request, a fork that begins too low."""
    assert text in miscounted(points_of(files(points)), 9, rewound=True)


def test_what_was_promised_done_and_asked_is_counted() -> None:
    """A point that is gone or other, an act that was done twice, a request that no point knows of."""
    assert "1 points" in told(changed(2, messages=["other"]))["lost"]
    assert told(right(), acts=("a", "b", "a")) == {"duplicate-effect": "a was done twice"}
    assert told(right(), requests=10) == {"guard-bypassed": "the server counts 10 requests, the points 9"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "has no attribute 'load'"),
        ("def load(line):\n    return 7\n", "int"),
        ("import longrun\n", "longrun is not there for exercises"),
    ],
)
def test_a_file_that_is_no_answer_loses_the_first_case_alone(tmp_path: Path, text: str, said: str) -> None:
    """The rest is not judged, and it is told why."""
    file = tmp_path / "exercise.py"
    file.write_text(text)
    rows = mark(EXERCISE, file, cases=frozenset({"end", "kill"}), out=tmp_path).rows
    assert [row.verdict for row in rows] == ["violation", "unmeasured"]
    assert said in rows[0].message
