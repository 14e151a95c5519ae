"""Exercise 7.2: what is demanded of the agent and of the branches is held against logs in memory that break it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from crashcourse import catalog
from crashcourse.inside_log import Branches, Functions, Letters, digest, latest, refusal, said
from crashcourse.marking import mark
from crashlab.errors import Violation

if TYPE_CHECKING:
    from pathlib import Path

EXERCISE = catalog.find("log-and-repair")
NOBODY = Functions(*[lambda *_: None] * 6)  # type: ignore[arg-type]  # no function is called


class Told:
    """A lab that knows what was acked."""

    def __init__(self, *acked: Any) -> None:
        self.acked = list(acked)


def call(number: int, to: str) -> dict[str, Any]:
    """A call for a letter."""
    return {"type": "tool_use", "id": f"call-{number}", "name": "send_letter", "input": {"to": to}}


def answered(*texts: str) -> list[dict[str, Any]]:
    """A conversation of one turn with two calls, and these results."""
    results = [{"type": "tool_result", "tool_use_id": f"call-{at}", "content": text} for at, text in enumerate(texts)]
    return [
        {"role": "user", "content": "Write."},
        {"role": "assistant", "content": [call(0, "Abe"), call(1, "Bea")]},
        *([{"role": "user", "content": results}] if results else []),
    ]


@pytest.mark.parametrize(
    ("messages", "told"),
    [
        (answered("sent", "unknown"), ""),
        (answered("sent"), "without `tool_result` blocks"),
        (answered(), "without `tool_result` blocks"),
        (answered("sent", "perhaps"), "a result is 'perhaps'"),
        (answered("sent", "sent", "sent"), "unexpected `tool_use_id`"),
        ([7], "project gives no messages"),
        (7, "at least one message is required"),
    ],
)
def test_what_a_server_would_refuse_is_refused(messages: Any, told: str) -> None:
    """An open call, one that was answered twice, a result that means nothing, no messages at all."""
    assert told in refusal(messages)
    assert bool(told) == bool(refusal(messages))


def test_the_agent_goes_by_the_last_result() -> None:
    """Of two calls for one letter the later one counts."""
    later = [*answered("sent", "not started"), {"role": "assistant", "content": [{**call(2, "Bea")}]}]
    result = {"type": "tool_result", "tool_use_id": "call-2", "content": "unknown"}
    assert latest([*later, {"role": "user", "content": [result]}]) == {"Abe": "sent", "Bea": "unknown"}


@pytest.mark.parametrize(
    ("changed", "kind"), [({"refused": "no"}, "invalid-transcript"), ({"said": []}, "lost"), ({"over": False}, "")]
)
def test_each_demand_on_the_agent_can_fail(changed: dict[str, Any], kind: str) -> None:
    """What was promised is there, what is shown can be sent, and the conversation ends."""
    shown = said(answered("sent", "sent"))
    right = {"refused": "", "said": shown, "over": True}
    letters, lab = Letters(NOBODY, 1), Told({"parts": 2, "digest": digest(shown[:2])})
    letters.check(lab, right)  # type: ignore[arg-type]  # all that a check asks
    with pytest.raises(Violation) as caught:
        letters.check(lab, {**right, **changed})  # type: ignore[arg-type]  # all that a check asks
    assert not kind or caught.value.kind == kind


def test_a_branch_that_was_promised_is_the_one_that_is_shown() -> None:
    """Or the next step of it; never the one that was left, and never a part of what was promised."""
    tree = Branches(NOBODY, 1)
    for done, stage in enumerate(tree.stages):
        tree.check(Told(done), {"texts": stage, "stage": 0})  # type: ignore[arg-type]  # all that a check asks
    tree.check(Told(3), {"texts": tree.stages[4][:3], "stage": 0})  # type: ignore[arg-type]  # all that a check asks
    for done, texts in ((3, tree.stages[2]), (4, tree.stages[3]), (5, tree.stages[4]), (2, tree.stages[2][:3])):
        with pytest.raises(Violation, match="expected"):
            tree.check(Told(done), {"texts": texts, "stage": 0})  # type: ignore[arg-type]  # all that a check asks


@pytest.mark.parametrize(
    ("text", "said_so"),
    [
        ("", "has no attribute 'open_log'"),
        ("def open_log(folder):\n    return 7\n", "has no attribute 'append'"),
        ("import longrun\n", "longrun is not there for exercises"),
    ],
)
def test_a_file_that_is_no_answer_loses_the_first_case_alone(tmp_path: Path, text: str, said_so: str) -> None:
    """The rest is not judged, and it is told why."""
    file = tmp_path / "exercise.py"
    file.write_text(text)
    rows = mark(EXERCISE, file, cases=frozenset({"kill", "branch"}), out=tmp_path).rows
    assert [row.verdict for row in rows] == ["violation", "unmeasured"]
    assert said_so in rows[0].message
