"""Exercise 4.2's judge: a ledger of another form passes, and one that is believed, rewritten or left out does not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from crashcourse import catalog
from crashcourse.inside_loop import Loop, Scene
from crashcourse.judging import merged
from crashcourse.marking import mark
from crashcourse.result import Outcome
from crashlab.errors import Violation
from crashlab.lab import Lab

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from crashcourse.desk import Desk
    from crashcourse.result import Result

EXERCISE = catalog.find("effects-ledger")
SOLUTION = (EXERCISE.folder / "solution" / EXERCISE.file).read_text()


def marked(text: str, cases: Sequence[str], folder: Path) -> Result:
    """The result of the solution, changed."""
    file = folder / EXERCISE.file
    file.write_text(text)
    return mark(EXERCISE, file, cases=frozenset(cases), out=folder / "runs")


def changed(*exchanged: tuple[str, str]) -> str:
    """The solution with some parts exchanged."""
    text = SOLUTION
    for before, after in exchanged:
        assert text.count(before) == 1
        text = text.replace(before, after)
    return text


def test_marks_in_the_ledger_are_as_good_as_in_the_state(tmp_path: Path) -> None:
    """If they are synced: the planted mistake ``lazy_mark`` with its one mend."""
    lazy = (EXERCISE.folder / "wrong" / "lazy_mark" / EXERCISE.file).read_text()
    assert lazy.count(", sync=False)") == 1
    result = marked(lazy.replace(", sync=False)", ")"), ("power", "unknown"), tmp_path)
    assert result.status == "pass", result.to_json()


def test_a_ledger_that_is_rewritten_loses_what_was_promised(tmp_path: Path) -> None:
    """Only the last line of each act is kept: shorter, and no longer what a save has counted."""
    tidy = changed(
        (
            "records = [read_line(path, number, line) for number, line in enumerate(lines, 1)]",
            (
                "records = [read_line(path, number, line) for number, line in enumerate(lines, 1)]\n"
                "        if len(records) > 2:\n"
                "            path.write_bytes(b''.join(line + b'\\n' for line in lines[1:]))\n"
                "            return Ledger(path, records[1:], path.stat().st_size)"
            ),
        ),
        ('record["n"] == number', "True"),
        ('        if len(records) < state["ledger_seen"]:', "        if not records:"),
    )
    (row,) = marked(tidy, ("kill",), tmp_path).rows
    assert row.verdict == "violation"
    assert row.finding is not None
    assert row.finding.kind in ("evidence-destroyed", "accepted-damage")


def test_a_ledger_that_nobody_counts_is_missed(tmp_path: Path) -> None:
    """Who leaves ``ledger_seen`` at 0 has promised nothing, and so cannot refuse damage."""
    text = changed(('    state["ledger_seen"] = len(ledger.records)\n', ""))
    (row,) = marked(text, ("kill",), tmp_path).rows
    assert row.finding is not None
    assert "the last save counts 0 lines of effects.jsonl" in row.finding.found


def nothing(_desk: Desk) -> None:
    """A submission that does nothing."""


@pytest.mark.parametrize("persona", ["careful", "hasty"])
def test_the_brief_scene_is_the_middle_of_the_work(tmp_path: Path, persona: str) -> None:
    """A reply and a page, and nothing else is done; the course's agent comes to the end of it."""
    scene = Scene(0, persona, brief=True)  # type: ignore[arg-type]  # one of the two personas
    done = []
    right = scene.right(
        Lab(tmp_path, lambda op, **fields: done.append(fields["name"]) if op.KIND == "effect" else None)
    )
    assert done == ["send_reply", "page_oncall"]
    assert right["world"]["replies"] == [["T-101", 0]]
    lab = Lab(tmp_path / "other", lambda *_, **__: None)
    lab.dir.mkdir()
    loop = Loop(nothing, scene, right)  # type: ignore[arg-type]  # any function will do
    with pytest.raises(Violation, match="no state that can be read is stored"), lab.checking():
        loop.check(lab, loop.work(lab))


def test_outcomes_of_two_reports_are_added_up() -> None:
    """States and times; a finding of either is the case's."""
    one = Outcome(case="once", verdicts={"consistent": 3}, ms=1)
    other = Outcome(case="once", verdicts={"consistent": 1, "violation": 2}, message="no", ms=2)
    (both,) = merged([one, other])
    assert (both.verdicts, both.message, both.ms) == ({"consistent": 4, "violation": 2}, "no", 3)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (changed(("def resume(desk):", "def go_on(desk):")), "has no attribute 'resume'"),
        (changed(('text = desk.do(call["name"], call["input"], key)', 'text = "done"')), "expected"),
        (changed(("import hashlib", "import hashlib\nimport longrun")), "longrun is not there for exercises"),
    ],
    ids=["no resume", "nothing done", "answers"],
)
def test_a_run_that_fails_by_itself_is_told(text: str, message: str, tmp_path: Path) -> None:
    """It loses the first case, with the reason."""
    result = marked(text, ("once", "damage"), tmp_path)
    assert {row.id: row.verdict for row in result.rows} == {"once": "violation", "damage": "unmeasured"}
    assert message in result.rows[0].message
