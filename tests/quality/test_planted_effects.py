"""The naive agents of lesson 4: each found by its kind and its family, clean once its one fault is mended.

And the two contrasts with which the lesson begins and ends: a kind model hides a harness without a ledger, and no
harness can be without a window in which it must say "unknown".
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from crashlab import Budget, Subject, explore
from crashlab.errors import Violation
from longrun.capstone import correct as capstone
from longrun.effects import correct, naive_no_started, naive_record_at_b
from longrun.inbox import DEFAULT_SEED, SHORT_BODY_BYTES, make_inbox
from longrun.resume import correct as resumed
from longrun.resume import trusting
from longrun.subjects import Description, describe, view
from tests.longrun.test_readme import PAGE, ROWS
from tests.quality.effects_agents import DEFECTS, EFFECTS
from tests.quality.test_planted_resumes import renamed

if TYPE_CHECKING:
    from pathlib import Path

    from crashlab import Report
    from crashlab.lab import Lab
    from longrun.harness import Harness
    from longrun.personas import Persona
    from longrun.subjects import End
    from tests.quality.effects_agents import PlantedEffect

FAST = Budget(real_kills=1, nested=4, subset=1, violations=1)
ENOUGH = replace(FAST, lost=12)
"""The other states of a family are left out after so many violations; one to which it is blind is swept whole."""
OPTIONS: dict[str, Any] = {"profile": "xfs", "budget": FAST}
TWINS: dict[str, tuple[Harness, Persona, str]] = {
    "hasty": (correct.HARNESS, "hasty", "kill,power,recovery,damage:empty,damage:nested"),
    "hasty where writes fail": (correct.HARNESS, "hasty", "error:EFBIG"),
    "careful": (correct.HARNESS, "careful", "kill"),
    "trusting": (trusting.HARNESS, "hasty", "kill"),
}
"""Harness, model and faults of what must be clean."""
HIDDEN = [
    pytest.param(fault, marks=[pytest.mark.full] if fault == "time key" else [])  # as "id key" is
    for fault, planted in EFFECTS.items()
    if planted.hidden_by_careful
]


def found(report: Report, planted: PlantedEffect) -> None:
    """Assert that the report is a violation of the stated kind, for what it is, in the stated family alone."""
    assert report.verdict == "violation", str(report)
    assert not report.unmeasured, str(report)
    told = {finding.kind for finding in report.findings}
    assert planted.kind in told <= {planted.kind, *planted.beside}, str(report)
    counts = {count.fault: count.violation for count in report.faults}
    blind = planted.blind.split(",")
    assert all((violations == 0) == (fault in blind) for fault, violations in counts.items()), str(report)
    summaries = " ".join(finding.summary for finding in report.findings if finding.kind == planted.kind)
    assert planted.words in summaries, str(report)


@pytest.mark.parametrize("fault", EFFECTS)
def test_the_fault_is_found_by_its_kind_and_family(fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of that kind and for what it is; faults that cannot show it find nothing.

    In the same crash state a renamed copy is found just the same.
    """
    planted = EFFECTS[fault]
    faults = ",".join(filter(None, [planted.blind, planted.faults]))
    options = {**OPTIONS, "budget": ENOUGH}
    report = explore(f"{planted.module.__name__}:subject", faults=faults, out=tmp_path, **options)
    found(report, planted)
    monkeypatch.syspath_prepend(tmp_path)
    first = next(finding.id for finding in report.findings if finding.kind == planted.kind)
    copied = renamed(planted, tmp_path)
    copy = explore(copied, faults=planted.faults, only=first, out=tmp_path / "copy", **OPTIONS)
    assert (copy.verdict, copy.findings[0].kind, copy.findings[0].id) == ("violation", planted.kind, first), str(copy)


@pytest.mark.parametrize("fault", EFFECTS)
def test_its_one_mend_makes_it_the_twin(fault: str) -> None:
    """It differs from its twin in the exchanged pieces, and in nothing else."""
    planted = EFFECTS[fault]
    assert planted.twin != planted.module.HARNESS
    assert planted.mended() == planted.twin
    for piece in planted.pieces:
        kept = tuple(each for each in planted.pieces if each != piece)
        assert replace(planted, pieces=kept).mended() != planted.twin, f"{piece} is not exchanged"


@pytest.mark.parametrize("name", TWINS)
def test_the_twins_are_clean(name: str, tmp_path: Path) -> None:
    """Mended, each passes every state of what found it."""
    harness, persona, faults = TWINS[name]
    subject = describe(harness, name="mended", persona=persona, body_bytes=SHORT_BODY_BYTES)
    report = explore(subject, faults=faults, out=tmp_path, **OPTIONS)
    assert report.verdict == "consistent", str(report)
    assert all(count.judged >= 4 for count in report.faults), str(report)
    assert sum(count.judged for count in report.faults) > 30, str(report)


@pytest.mark.parametrize("fault", HIDDEN)
def test_a_kind_model_hides_what_an_act_is_called_and_whether_it_is_asked_for(fault: str, tmp_path: Path) -> None:
    """With the careful model the same harness passes every kill: whoever looks first needs no gate."""
    subject = describe(EFFECTS[fault].module.HARNESS, name="kindly asked", body_bytes=SHORT_BODY_BYTES)
    report = explore(subject, faults="kill", out=tmp_path, **OPTIONS)
    assert report.verdict == "consistent", str(report)


def test_the_harness_of_lesson_3_is_green_with_the_careful_model_and_red_with_the_hasty_one(tmp_path: Path) -> None:
    """Without mark and ledger all hangs on the model. The whole protocol stands with both: it is among the twins."""
    reports = []
    for name, faults in (("subject", "kill,recovery"), ("subject_hasty", "kill")):
        reports.append(explore(f"longrun.resume.without_ledger:{name}", faults=faults, out=tmp_path, **OPTIONS))
    green, red = reports
    assert green.verdict == "consistent", str(green)
    assert (red.verdict, {finding.kind for finding in red.findings}) == ("violation", {"duplicate-effect"}), str(red)
    assert not red.unmeasured, str(red)
    assert resumed.HARNESS == correct.HARNESS


# --- what stays unknown -------------------------------------------------------------------------------


class Deciding(Description):
    """An agent whose end counts as wrong where it is left to a person, so that the lab counts these states."""

    def check(self, lab: Lab, end: End) -> None:
        super().check(lab, end)
        if end["unknown"]:
            text = f"left to a person: {', '.join(end['unknown'])}"
            raise Violation(text)


def left_to_a_person(harness: Harness, out: Path, persona: Persona = "hasty") -> tuple[Report, list[int]]:
    """The report on kills, and per state that ends with something unknown the number of ops that were done."""
    inbox = make_inbox(DEFAULT_SEED, body_bytes=SHORT_BODY_BYTES)
    asked = Deciding(harness, persona, DEFAULT_SEED, inbox)
    subject = Subject(asked.run, asked.resume, check=asked.check, view=view, name="deciding")
    report = explore(subject, faults="kill", out=out, **OPTIONS)
    ids = [state for finding in report.findings for state in (finding.id, *finding.same)]
    assert len(ids) == report.faults[0].violation, "not every state is listed"
    return report, [int(state.removeprefix("kill@").partition("+")[0]) for state in ids]


def moment(report: Report, op: str, text: str) -> int:
    """The number of the one op of that kind whose text begins so."""
    (number,) = (each.n for each in report.moments if each.op == op and each.text.startswith(text))
    return number


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Report, list[int]]:
    """What the whole protocol leaves to a person."""
    return left_to_a_person(correct.HARNESS, tmp_path_factory.mktemp("whole"))


def test_only_between_mark_and_record_nobody_knows(whole: tuple[Report, list[int]]) -> None:
    """Each state that is left to a person lies from the mark of the page to its record, and none elsewhere.

    A reply is never left: the world can be asked for it. All of these states are honest: the files cannot tell.
    """
    require_window(*whole)


@pytest.mark.full
@pytest.mark.parametrize(
    ("harness", "persona"),
    [(correct.HARNESS, "careful"), (capstone.HARNESS, "careful"), (capstone.HARNESS, "hasty")],
    ids=["effects, careful", "capstone, careful", "capstone, hasty"],
)
def test_so_with_either_model_and_where_each_save_is_a_point(
    harness: Harness, persona: Persona, tmp_path: Path
) -> None:
    """The window is that of the protocol, not of the model and not of one way to save."""
    require_window(*left_to_a_person(harness, tmp_path, persona))


def require_window(report: Report, at: list[int]) -> None:
    """All states that are left to a person are about the page, and lie from its mark to its record."""
    before, page = moment(report, "save point", "turn5.tool1.ledger"), moment(report, "effect", "page_oncall")
    assert {finding.kind for finding in report.findings} == {"diverged"}, str(report)
    assert all("left to a person: page_oncall" in finding.summary for finding in report.findings), str(report)
    assert at
    assert all(before < number <= page for number in at), at
    assert page in at


def test_less_protocol_leaves_more_to_a_person(whole: tuple[Report, list[int]], tmp_path: Path) -> None:
    """The whole protocol leaves the fewest states, one without the mark more, one that records at B the most.

    The page of longrun tells how many each. Of the last some lie outside the window of the page, and are seen there.
    """
    _, no_mark = left_to_a_person(naive_no_started.HARNESS, tmp_path)
    report, late = left_to_a_person(naive_record_at_b.HARNESS, tmp_path)
    assert 0 < len(whole[1]) < len(no_mark) < len(late)
    assert any(number > moment(report, "effect", "page_oncall") for number in late)
    told = PAGE.partition("### What stays unknown")[2].partition("##")[0]
    assert [int(number) for number in re.findall(r"\b\d+\b", told)] == [len(whole[1]), len(no_mark), len(late)]


# --- the defects of the published agent ---------------------------------------------------------------


def test_each_defect_of_effects_has_its_module_and_its_test() -> None:
    """The table here and the page of longrun say the same, and the test that is named tries that row."""
    assert list(DEFECTS) == [4, 5, 6, 14, 15]
    page = {int(row[0]): row for row in ROWS}
    for number, defect in DEFECTS.items():
        _, what, module, found_by = page[number]
        name = EFFECTS[defect.row].module.__name__.removeprefix("longrun.").replace(".", "/")
        assert (what, f"`{name}`" in module, f'"{defect.row}"' in found_by) == (defect.what, True, True), number
        test = globals()[defect.test]
        assert any(defect.row in mark.args[1] for mark in test.pytestmark), number
