"""The judges of exercises 1.1, 1.2 and 2.1: hostile answers, other right answers, and truths that are not typed in."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import pytest

from crashcourse import catalog
from crashcourse.desk import inbox_seed
from crashcourse.explain import stage
from crashcourse.inside_fields import CAPS, FIELDS, SixFields, Variant
from crashcourse.judges import loss_inventory, missing_fields
from crashcourse.judges.loss_inventory import ITEMS, Item
from crashcourse.marking import mark
from crashlab import Subject

if TYPE_CHECKING:
    from pathlib import Path

    from crashcourse.result import Result

LOSSES, PRICES, FIELDS_OF = (catalog.find(name) for name in ("loss-inventory", "price-of-rerun", "missing-fields"))
EXPLAINED = (LOSSES, PRICES, FIELDS_OF)


def solution(exercise: catalog.Exercise) -> str:
    """What gets all points."""
    return (exercise.folder / "solution" / exercise.file).read_text()


def marked(exercise: catalog.Exercise, text: str, folder: Path, cases: tuple[str, ...] = ()) -> Result:
    """The result of these answers."""
    file = folder / exercise.file
    file.write_text(text)
    return mark(exercise, file, cases=frozenset(cases) or None, out=folder / "runs")


def changed(exercise: catalog.Exercise, before: str, after: str) -> str:
    """The solution with one part exchanged."""
    text = solution(exercise)
    assert text.count(before) == 1, before
    return text.replace(before, after)


@pytest.mark.parametrize("exercise", EXPLAINED, ids=lambda exercise: exercise.slug)
@pytest.mark.parametrize("text", ["", "[other]\n", "reply = [\n", "x = " + "{x = " * 2_000])
def test_what_is_no_answer_loses_everything_and_is_told(exercise: catalog.Exercise, text: str, tmp_path: Path) -> None:
    """No answer is an error of the judge, and none is left unjudged in silence."""
    result = marked(exercise, text, tmp_path)
    assert (result.status, result.points) == ("fail", 0)
    first = result.rows[0]
    assert first.message or (first.finding and first.finding.found.endswith("is missing"))


@pytest.mark.parametrize(
    ("exercise", "before", "after", "case", "told"),
    [
        (LOSSES, 'point = "turn5.B.rename+"', 'point = "turn5.B.renamed+"', "witness", "near it are turn5.B.rename"),
        (LOSSES, 'item = "reply_note"', 'item = "notes"', "witness", "witness.item is 'notes'; expected 'reply'"),
        (LOSSES, 'point = "turn5.B.rename+"', 'point = "turn5.B.data+"', "witness", "it is gone too"),
        (PRICES, 'point = "turn3.tool4.effect+"', 'point = "start"', "zero", "nothing was done yet"),
        (PRICES, "[1, 2, 3]", '"1, 2, 3"', "tokens", "expected a list of whole numbers"),
        (PRICES, "[1, 2, 3, 4]", "[2, 3, 4]", "tokens", "turns 2, 3, 4; both runs together pay"),
        (FIELDS_OF, 'point = "turn11.tool1.effect+"', 'point = "kill@1"', "field.version", "without version: none"),
        (FIELDS_OF, 'point = "turn11.tool1.effect+"', 'point = "kill@9999"', "field.version", "no crash point"),
    ],
)
def test_each_mistake_is_told_where_it_is(  # noqa: PLR0913, PLR0917 - one row of the table
    exercise: catalog.Exercise, before: str, after: str, case: str, told: str, tmp_path: Path
) -> None:
    """It loses its case, with the key or with what was measured."""
    (row,) = marked(exercise, changed(exercise, before, after), tmp_path, (case,)).rows
    assert row.verdict == "violation"
    assert row.finding is not None
    assert told in row.finding.found


@pytest.mark.parametrize(
    ("cap", "told"), [("14", ""), ("2", "with all fields: turn-cap"), ("true", "turns.cap is True")]
)
def test_a_cap_lies_between_the_crash_and_the_end(cap: str, told: str, tmp_path: Path) -> None:
    """One that was passed before the crash is broken with all fields, too; one that is no number is told."""
    (row,) = marked(FIELDS_OF, changed_all("cap = 6", f"cap = {cap}"), tmp_path, ("field.turns",)).rows
    assert (row.verdict == "consistent") == (not told)
    assert told in (row.finding.found if row.finding else "")


def changed_all(before: str, after: str) -> str:
    """The solution of 2.1 with all of its caps exchanged."""
    return solution(FIELDS_OF).replace(before, after)


def test_other_right_answers_get_all_points(tmp_path: Path) -> None:
    """By id, at other points, and in words that nobody judges."""
    text = changed(PRICES, 'point = "turn5.tool3.effect+"', 'why = "All acts are done."\npoint = "turn6.request-"')
    assert marked(PRICES, text, tmp_path).points == 100
    text = changed(PRICES, 'point = "turn4.tool1.effect+"', 'point = "kill@10"')
    assert marked(PRICES, text, tmp_path).points == 100
    earlier = 'point = "turn4.tool1.effect-"\nitem = "case"'
    text = changed(LOSSES, 'point = "turn5.B.rename+"\nitem = "reply_note"', earlier)
    assert marked(LOSSES, text, tmp_path).points == 100


def test_fates_are_looked_up_and_not_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Were the notes to hold the plan, a learner who says so would be right."""
    monkeypatch.setattr(loss_inventory, "ITEMS", {**ITEMS, "plan": Item(words=r"^- set_label {ticket}:")})
    text = solution(LOSSES)
    result = marked(LOSSES, text, tmp_path, ("kinds", "fate", "evidence"))
    assert [dict(row.verdicts) for row in result.rows] == [{"consistent": 9, "violation": 1}] * 3


def test_a_witness_needs_its_twin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a resume with all fields goes wrong in the same way, the point proves nothing about the field."""
    monkeypatch.setattr(missing_fields, "variants", lambda _form, name: (Variant(missing=name), Variant(missing=name)))
    result = marked(FIELDS_OF, solution(FIELDS_OF), tmp_path, ("field.version", "field.task"))
    assert [row.verdict for row in result.rows] == ["violation"] * 2
    assert all(row.finding and "with all fields: " in row.finding.found for row in result.rows)


def test_with_all_fields_every_crash_is_survived() -> None:
    """The mended twin all over the run; and without each field something goes wrong somewhere."""
    variants = (Variant(), *(Variant(missing=name, capped=name if name in CAPS else None, cap=12) for name in FIELDS))
    run = SixFields(inbox_seed(1), variants)
    symptoms = defaultdict[str, set[str]](set)
    with stage(Subject(run.run, run.resume)) as scene:
        for point in ("start", "turn0.R+", "turn3.A+", "turn10.tool1.effect+", "turn12.tool1.effect+", "turn13.B+"):
            step = scene.recovered(scene.places[point][0])
            assert step.value is not None
            for name, symptom in step.value["end"].items():
                symptoms[name.partition("/")[0]].add(symptom)
    assert symptoms.pop("whole") == {"none"}
    assert symptoms == {
        "version": {"none", "duplicate-effect"},
        "task": {"none", "invalid-transcript"},
        "turns": {"none", "turn-cap"},
        "tokens_used": {"none", "token-cap"},
        "pending_tool_use": {"none", "invalid-transcript"},
    }
