"""Exercise 6.2: what is demanded of the end of a whole harness is held against ends that break it, one by one."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from crashcourse import catalog
from crashcourse.inside import Later
from crashcourse.inside_loop import RAN_AGAIN, Scene
from crashcourse.inside_whole import CAPPED, PLAIN, WAITING, Whole
from crashcourse.marking import mark
from crashlab.errors import Violation

if TYPE_CHECKING:
    from pathlib import Path

    from crashlab.lab import Lab

EXERCISE = catalog.find("wire-it-all")
WORLD: dict[str, Any] = {"labels": {}, "cases": [], "report": None, "replies": [["T-1", 0]], "pages": ["T-1"]}
TALK = [{"role": "user", "content": "task"}, {"role": "assistant", "content": [{"type": "text", "text": "Done."}]}]


def end(**other: Any) -> dict[str, Any]:
    """A right end, with what is said of it."""
    counters = {"turns": 1, "tokens_used": 9, "requests_started": 1}
    usual = {"status": "done", "counters": counters, "reason": "end_turn", "transcript": TALK, "paid": 9}
    return {**usual, "world": WORLD, "unknown": [], "refusals": [], "requests": 1, "acks": 1, "process": "b", **other}


def acked(**other: Any) -> dict[str, Any]:
    """What another process has promised before."""
    return {"process": "a", "status": "running", "turns": 0, "tokens_used": 0, "requests_started": 1, **other}


def judged(found: dict[str, Any], *acks: dict[str, Any], kind: str = PLAIN, requests: int = 1) -> tuple[str, str]:
    """The kind and the text of what is wrong about an end; empty where nothing is."""
    lab = SimpleNamespace(acked=list(acks), records=lambda _name: [None] * requests)
    nobody = Later("", "")
    whole = Whole(nobody, nobody, Scene(0, "hasty", brief=True), {"world": WORLD}, kind)
    try:
        whole.check(cast("Lab", lab), found)
    except Violation as violation:
        return violation.kind, str(violation)
    return "", ""


def counted(**other: int) -> dict[str, Any]:
    """A right end but for its counters."""
    return end(counters={**end()["counters"], **other})


def test_a_right_end_is_right() -> None:
    """In the plain scene, after another process, and where an unknown act waits for a person."""
    assert judged(end()) == ("", "")
    assert judged(end(), acked()) == ("", "")
    assert judged(end(status="waiting", unknown=[["page_oncall", {}]])) == ("", "")
    assert judged(end(), kind=WAITING) == ("", "")
    assert judged(end(status="stopped", reason="turn_limit"), kind=CAPPED) == ("", "")


@pytest.mark.parametrize(
    ("found", "acks", "kind", "text"),
    [
        (end(), [acked(status="done")], RAN_AGAIN, "the run was over"),
        (end(refusals=["tool_use without result"]), [], "invalid-transcript", "answered 400"),
        (end(transcript=TALK[1:]), [], "invalid-transcript", "would be refused"),
        (counted(turns=2), [], "guard-bypassed", "turns is 2"),
        (counted(tokens_used=8), [], "guard-bypassed", "tokens_used is 8, paid 9"),
        (counted(requests_started=0), [], "guard-bypassed", "requests, more than were started"),
        (counted(requests_started=90), [], "guard-bypassed", "90 requests are counted"),
        (end(), [acked(tokens_used=10)], "guard-bypassed", "tokens_used fell from 10 to 9"),
        (end(status="waiting"), [], "diverged", "expected 'done'"),
        (end(unknown=[["page_oncall", {}]]), [], "diverged", "expected 'waiting'"),
        (end(world={**WORLD, "report": "other"}), [], "diverged", "report"),
    ],
)
def test_each_demand_can_fail(found: dict[str, Any], acks: list[dict[str, Any]], kind: str, text: str) -> None:
    """By its own kind and words."""
    told = judged(found, *acks)
    assert (told[0], text in told[1]) == (kind, True), told


def test_each_demand_of_the_scenes_can_fail() -> None:
    """A cap that is evaded, a question that is forgotten or asked again, a call that is made for ever."""
    stopped = {"status": "stopped", "reason": "turn_limit"}
    four = {"turns": 4, "tokens_used": 9, "requests_started": 4}
    talk = [TALK[0], *(TALK[1], TALK[0]) * 3, TALK[1]]
    assert "evaded" in judged(end(**stopped, counters=four, transcript=talk), kind=CAPPED)[1]
    assert judged(end(), kind=CAPPED)[0] == "diverged"
    assert judged(end(world={**WORLD, "pages": []}), kind=WAITING)[0] == "missing-effect"
    assert "asked again" in judged(end(status="waiting", unknown=[["page_oncall", {}]]), kind=WAITING)[1]
    assert judged({"deaths": 6})[0] == "hang"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "has no attribute 'start'"),
        ("def start(desk):\n    return 7\n", "return the state, a dictionary"),
        ("def start(desk):\n    desk.save({})\n", "no attribute 'save'"),
    ],
)
def test_a_file_that_is_no_answer_loses_the_first_case_alone(tmp_path: Path, text: str, said: str) -> None:
    """The rest is not judged, and it is told why."""
    file = tmp_path / "exercise.py"
    file.write_text(text)
    rows = mark(EXERCISE, file, cases=frozenset({"kill", "once"}), out=tmp_path).rows
    assert [row.verdict for row in rows] == ["violation", "unmeasured"]
    assert said in rows[0].message
