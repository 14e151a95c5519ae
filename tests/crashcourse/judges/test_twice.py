"""Exercise 4.1's judge: natures are measured, pairs of crashes are looked at, and answers that are none are told."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from crashcourse import catalog
from crashcourse.judges import twice
from crashcourse.judges.twice import SETTINGS, nature_of
from crashcourse.marking import mark
from longrun.inbox import make_inbox
from longrun.tools import TOOLS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from crashcourse.result import Result, Row

EXERCISE = catalog.find("twice")
SOLUTION = (EXERCISE.folder / "solution" / EXERCISE.file).read_text()
V1 = 'one = "turn5.A.ack+"\nother = "turn5.tool3.effect+"'
V2 = 'one = "turn5.tool1.effect-"\nother = "turn5.tool1.effect+"'


def marked(text: str, folder: Path, cases: Sequence[str] = ()) -> Result:
    """The result of these answers."""
    file = folder / EXERCISE.file
    file.write_text(text)
    return mark(EXERCISE, file, cases=frozenset(cases) or None, out=folder / "runs")


def row_of(before: str, after: str, case: str, folder: Path) -> Row:
    """The row of a case, one part of the solution exchanged."""
    assert SOLUTION.count(before) == 1
    (row,) = marked(SOLUTION.replace(before, after), folder, [case]).rows
    return row


def test_the_world_shows_what_a_tool_is() -> None:
    """As the tools say of themselves; each setting changes one of them, and one alone."""
    inbox = make_inbox(body_bytes=0)
    assert {name: nature_of(name, inbox) for name in TOOLS} == {name: tool.nature for name, tool in TOOLS.items()}
    changed = {
        setting: {name: there for name in TOOLS if (there := nature_of(name, inbox, setting)) != TOOLS[name].nature}
        for setting in SETTINGS
    }
    assert changed == {
        "no_case_keys": {"open_case": "non-idempotent"},
        "same_reply_once": {"send_reply": "idempotent"},
        "label_history": {"set_label": "non-idempotent"},
    }


@pytest.mark.parametrize(
    ("setting", "tool", "becomes", "verdict"),
    [
        ("same_reply_once", "send_reply", "idempotent", "consistent"),
        ("label_history", "set_label", "non-idempotent", "consistent"),
        ("label_history", "set_label", "read-only", "violation"),
        ("no_case_keys", "page_oncall", "non-idempotent", "violation"),
    ],
)
def test_any_flip_that_the_world_shows_is_right(
    setting: str, tool: str, becomes: str, verdict: str, tmp_path: Path
) -> None:
    """And no other: not another nature, and not a tool that the setting leaves as it is."""
    before = 'setting = "no_case_keys"\ntool = "open_case"\nbecomes = "non-idempotent"'
    after = f'setting = "{setting}"\ntool = "{tool}"\nbecomes = "{becomes}"'
    assert row_of(before, after, "flip", tmp_path).verdict == verdict


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        (V2, V1, "leave two that differ"),
        (V2, V2.replace("effect-", "S.ack+"), ""),
        (V2, V2.replace("effect+", "effect-"), "the same was done to the world"),
        (V2, V2.replace("turn5.tool1.effect+", "none"), "none"),
        (V2, V2.replace("turn5.tool1.effect+", "turn5.tool4.effect+"), "no crash point of this run"),
    ],
    ids=["a whole turn", "after the mark", "one point", "none", "no point"],
)
def test_a_pair_is_looked_at(before: str, after: str, found: str, tmp_path: Path) -> None:
    """Whether it leaves one directory and two worlds; another pair that does is as right."""
    row = row_of(before, after, "same.v2", tmp_path)
    assert (row.finding.found if row.finding else "") == found or (row.finding and found and found in row.finding.found)


def test_a_judge_that_does_not_look_at_the_world_takes_any_two_points(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The judge sabotaged: each state has a world of its own."""
    monkeypatch.setattr(twice, "world_of", lambda _state: Counter([(object(), "")]))
    assert row_of(V2, V2.replace("effect+", "effect-"), "same.v2", tmp_path).verdict == "consistent"


@pytest.mark.parametrize(
    ("text", "found"),
    [(SOLUTION.replace("[flip]", "[flop]"), "flop"), ("nature", "nature"), (SOLUTION + "\n[v3]\n", "v3")],
)
def test_answers_that_cannot_be_read_lose_the_first_case(text: str, found: str, tmp_path: Path) -> None:
    """With the key, or the place; nothing else is judged."""
    result = marked(text, tmp_path)
    assert [row.verdict for row in result.rows] == ["violation", "unmeasured", "unmeasured", "unmeasured"]
    assert found in result.rows[0].message


@pytest.mark.parametrize("value", ["7", "[]", '"harmless"', f'"{"x" * 5_000}"'])
def test_an_odd_answer_loses_its_case_with_its_key(value: str, tmp_path: Path) -> None:
    """Of another type, of no known nature, or without end."""
    row = row_of('set_label = "idempotent"', f"set_label = {value}", "nature", tmp_path)
    assert row.finding is not None
    assert "nature.set_label" in row.finding.found
    assert len(row.finding.found) < 500
