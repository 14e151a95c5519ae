"""Damage at rest: planted faults are found by their kind, correct twins stay clean, a sabotaged lab turns red."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from crashlab import Budget, Policy, Store, explore
from crashlab import damage_demands as demands
from crashlab.crash import damage, damages
from crashlab.report.views import draw
from tests.quality import damaged_stores as planted

if TYPE_CHECKING:
    from pathlib import Path

    from crashlab import Report


BRIEF = Budget(real_kills=1, subset=4, sample=16)
ENOUGH = 20
"""After so many violations the other states are left out in the quick profile."""
LATE = ("stops at the first bad record", "stops in silence, but takes no more")
"""Faults whose kind is not among the first violations."""
IN_FULL = ("checksum over all", "log that refuses", "log that leaves out and says so", "payments with a key")
"""A store, two logs and a program that meet every kind in the quick profile; the others meet kinds of few states."""
FEW = "damage:empty,damage:truncate,damage:zeros,damage:foreign,damage:extra,damage:missing,damage:stale"


def kinds(report: Report) -> set[str]:
    """The kinds of the findings."""
    return {finding.kind for finding in report.findings}


def demand_found(name: str, out: Path, *, whole: bool = False) -> None:
    """The planted fault is a violation of the stated kind, by this fault, with advice and a way to see it again."""
    subject, faults, wanted = planted.FOUND[name]
    budget = BRIEF if whole or name in LATE else replace(BRIEF, lost=ENOUGH)
    report = explore(subject, faults=faults, out=out, budget=budget)
    assert report.verdict == "violation", str(report)
    assert wanted <= kinds(report), str(report)
    assert not report.unmeasured, str(report)
    assert all(finding.id.startswith("damage@") and finding.advice for finding in report.findings)


@pytest.mark.parametrize("name", planted.FOUND)
@pytest.mark.parametrize("whole", [False, pytest.param(True, marks=pytest.mark.full)], ids=["enough", "all"])
def test_a_planted_fault_is_found(name: str, whole: bool, tmp_path: Path) -> None:
    """By the kind that it is."""
    demand_found(name, tmp_path, whole=whole)


@pytest.mark.parametrize(
    ("name", "faults"),
    [
        *((name, "damage" if name in IN_FULL else FEW) for name in planted.CLEAN),
        *(pytest.param(name, "damage", marks=pytest.mark.full) for name in planted.CLEAN if name not in IN_FULL),
    ],
)
def test_a_correct_twin_is_clean(name: str, faults: str, tmp_path: Path) -> None:
    """No violation over every kind and file, with the undamaged twin recovered, and much refused."""
    report = explore(planted.CLEAN[name], faults=faults, out=tmp_path, budget=BRIEF)
    assert report.verdict == "consistent", str(report)
    assert not report.unmeasured
    assert all(control.passed for control in report.controls)
    assert "undamaged-twin" in {control.control for control in report.controls}
    (count,) = report.faults
    assert count.judged == count.distinct == count.consistent + count.refused > (100 if faults == "damage" else 10)
    assert count.refused > 0


def test_who_refuses_everything_never_passes(tmp_path: Path) -> None:
    """A program that refuses every state refuses the undamaged ones too, and so nothing is known of damage."""
    report = explore(planted.REFUSES_ALL, faults="damage:bit", out=tmp_path, budget=BRIEF)
    assert report.verdict == "unmeasured", str(report)
    assert [reason.code for reason in report.unmeasured] == ["never-recovered"]
    assert [control.passed for control in report.controls if control.control == "undamaged-twin"] == [False]


def test_a_store_that_never_loads_never_passes(tmp_path: Path) -> None:
    """Its round trip fails before anything is damaged."""
    report = explore(
        Store(planted.save_sealed, planted.refuse, values=planted.VALUES), faults="damage", out=tmp_path, budget=BRIEF
    )
    assert report.verdict == "unmeasured", str(report)


def test_what_nobody_can_see_is_told_and_no_violation(tmp_path: Path) -> None:
    """A log without a mark that was cut is a sound log of an earlier moment; with a mark it is refused."""
    plain, marked = (
        explore(subject, faults="damage:truncate", out=tmp_path, budget=BRIEF)
        for subject in (planted.LOG, planted.COUNTED)
    )
    assert (plain.verdict, marked.verdict) == ("consistent", "consistent"), f"{plain}\n{marked}"
    told = [note for note in plain.notes if note.startswith("undetectable: ")]
    assert len(told) == 1
    assert 0 < int(told[0].split()[1].replace(",", "")) <= plain.faults[0].consistent
    assert marked.faults[0].refused > plain.faults[0].refused


def test_a_directory_that_was_put_back_whole_is_judged_and_told(tmp_path: Path) -> None:
    """With keys the world knows what was done; without, the report says in how many states nobody could know."""
    keyed, plain = (
        explore(subject, faults="damage:restore", out=tmp_path, budget=BRIEF)
        for subject in (planted.POINTS_BY_KEY, planted.POINTS_WITHOUT_KEY)
    )
    assert (keyed.verdict, plain.verdict) == ("consistent", "consistent"), f"{keyed}\n{plain}"
    assert not any(note.startswith("undetectable: ") for note in keyed.notes)
    whole, redone = (note for note in plain.notes if note.startswith("undetectable: "))
    assert "a whole directory was put back that the run once had" in redone
    assert 0 < int(redone.split()[2]) <= int(whole.split()[1]) <= plain.faults[0].consistent
    for form, view in (("text", {"color": False}), ("html", {}), ("json", {})):
        assert redone in " ".join(draw([plain], form, **view).split())


def test_a_refusal_is_a_violation_where_the_policy_wants_none(tmp_path: Path) -> None:
    """The default allows it; ``Policy(refuse=False)`` demands the truth from damaged files too."""
    policy = {"damage": Policy(refuse=False)}
    report = explore(planted.SEALED, faults="damage:empty", policy=policy, out=tmp_path, budget=BRIEF)
    assert (report.verdict, kinds(report)) == ("violation", {"lost"}), str(report)


# --- the checker is checked -----------------------------------------------------------------------


def test_a_source_that_damages_nothing_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sabotage: no damage is made, so nothing is found any more."""
    monkeypatch.setattr(damages, "apply", lambda _trace, _damage: None)
    with pytest.raises(AssertionError):
        demand_found("no checksum", tmp_path)


@pytest.mark.parametrize("name", ["no checksum", "none on error"])
def test_a_judge_that_believes_everything_is_noticed(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sabotage: whatever comes back is consistent."""
    monkeypatch.setattr(demands.DamageDemands, "rule", lambda *_: demands.Ruling("consistent"))
    with pytest.raises(AssertionError):
        demand_found(name, tmp_path)


def test_a_judge_that_excuses_all_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sabotage: what follows a bad record is never looked at, so each is taken for a torn end."""
    monkeypatch.setattr(demands, "_is_whole", lambda *_: False)
    with pytest.raises(AssertionError):
        demand_found("stops in silence, but takes no more", tmp_path)


def test_a_judge_that_excuses_nothing_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sabotage: a correct log is accused of what it cannot know."""
    monkeypatch.setattr(demands.Moments, "alike", lambda *_: None)
    report = explore(planted.LOG, faults="damage:truncate", out=tmp_path, budget=BRIEF)
    assert (report.verdict, kinds(report)) == ("violation", {"lost", "silent-reset"}), str(report)


def test_a_judge_that_knows_no_earlier_directory_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sabotage: what nobody could tell is held against the program."""
    monkeypatch.setattr(demands.Moments, "was", lambda *_: False)
    report = explore(planted.POINTS_WITHOUT_KEY, faults="damage:restore", out=tmp_path, budget=BRIEF)
    assert (report.verdict, kinds(report)) == ("violation", {"duplicate-effect"}), str(report)


def test_the_recovery_really_meets_the_damage(tmp_path: Path) -> None:
    """Every kind that a JSON file can have makes the store without a checksum fail or refuse at least once."""
    tried = [
        kind for kind in damage.IN_BYTES if kind not in ("swap", "misdirect", "version")
    ]  # no second file, no such field
    for kind in tried:
        report = explore(planted.SMALL, faults=f"damage:{kind}", out=tmp_path, budget=BRIEF)
        (count,) = report.faults
        assert count.refused + count.violation > 0, f"{kind}\n{report}"
