"""The naive agents of lesson 6 are found, each for its fault; the whole harness is clean under every family.

In the quick profile each naive agent is met at one state, and the correct one by small budgets. The full profile
sweeps: ``CRASHLAB_TEST_PROFILE=full``.
"""

from __future__ import annotations

import ast
import inspect
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import longrun
from crashlab import Budget, explore
from longrun.capstone import correct
from longrun.checkpoint import correct as one_file
from longrun.inbox import SHORT_BODY_BYTES
from longrun.subjects import describe
from tests.quality.capstone_agents import DEFECTS, PLANTED

if TYPE_CHECKING:
    from crashlab import Report
    from tests.quality.capstone_agents import Planted

ONE = Budget(real_kills=0, sample=0)
SMALL = Budget(real_kills=1, nested=2, sample=0, subset=0)
LARGE = Budget(states=60_000, real_kills=12, nested=60, sample=200, time_s=1_500.0)
FEW = "kill,power,recovery,damage:swap,error:short-write"

ONE_FILE = describe(one_file.HARNESS, name="one file", body_bytes=SHORT_BODY_BYTES)
SCENES = ("subject_fresh", "subject_waiting", "subject_waiting_hasty", "subject_turns", "subject_tokens")


def sweep(subject: object, out: Path, faults: str, budget: Budget, **options: str) -> Report:
    """A report, its counts printed."""
    report: Report = explore(subject, faults=faults, out=out, budget=budget, **options)  # type: ignore[arg-type]  # a path, or a subject
    for count in report.faults:
        sys.stdout.write(f"{count.fault}: {count.judged} judged, {count.refused} refused, {count.violation} bad\n")
    return report


def renamed(planted: Planted, directory: Path) -> str:
    """The path of a copy without name, docstring and title."""
    tree = ast.parse(inspect.getsource(planted.module))
    tree.body = tree.body[1:]  # the docstring says which fault it is
    text = ast.unparse(tree).replace(planted.module.__name__.removeprefix("longrun.").replace(".", "/"), "agent")
    assert "naive" not in text
    (directory / "plain_agent.py").write_text(text)
    return "plain_agent:subject"


@pytest.mark.parametrize("fault", PLANTED)
def test_the_fault_is_found_for_what_it_is(fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the stated state: of a stated kind, in the stated family, in those words; a renamed copy just the same.

    The twin, which meets the same at the same place, is clean there. One that has other ops at the end has no such
    place; it is swept below.
    """
    planted = PLANTED[fault]
    monkeypatch.syspath_prepend(tmp_path)
    state = planted.state
    for path in (f"{planted.module.__name__}:subject", renamed(planted, tmp_path)):
        report = sweep(path, tmp_path / "out", planted.fault, ONE, **({"only": state} if state else {}))
        finding = report.findings[0]
        assert (report.verdict, finding.fault) == ("violation", planted.fault), str(report)
        assert state in ("", finding.id), str(report)
        assert finding.kind in planted.kinds, str(report)
        assert planted.words in str(report), str(report)
        assert not [each for each in report.unmeasured if each.code != "never-recovered"], str(report)
        state = finding.id
    if planted.state:
        twin = ONE_FILE if not planted.twin_subject else f"longrun.capstone.correct:{planted.twin_subject}"
        report = sweep(twin, tmp_path, planted.fault, ONE, only=state)
        assert report.verdict == "consistent", str(report)
        assert sum(count.judged for count in report.faults) == 1


@pytest.mark.full
@pytest.mark.parametrize("fault", PLANTED)
def test_the_whole_sweep_finds_these_kinds_and_no_other(fault: str, tmp_path: Path) -> None:
    """Every state of the family; the family to which it is blind finds nothing."""
    planted = PLANTED[fault]
    budget = replace(SMALL, sample=12)
    report = sweep(f"{planted.module.__name__}:subject", tmp_path, planted.fault, budget)
    assert report.verdict == "violation"
    told = {finding.kind for finding in report.findings}
    assert set(planted.kinds) <= told <= {*planted.kinds, *planted.beside}, str(report)
    assert report.findings[0].kind == planted.kinds[0]
    assert [each.code for each in report.unmeasured] == ["never-recovered"] * planted.never, str(report)
    if planted.blind:
        blind = sweep(f"{planted.module.__name__}:subject", tmp_path, planted.blind, SMALL)
        assert blind.verdict == "consistent", str(blind)


@pytest.mark.parametrize("fault", PLANTED)
def test_its_one_mend_makes_it_the_twin(fault: str) -> None:
    """It differs from its twin in one piece, and in nothing else."""
    planted = PLANTED[fault]
    assert planted.twin != planted.module.HARNESS
    assert planted.mended() == planted.twin


# --- the correct one ----------------------------------------------------------------------------------


def test_the_whole_harness_is_clean_under_every_family(tmp_path: Path) -> None:
    """Kills, power losses, second kills, damage, I/O errors and a second owner: nothing is lost or done twice."""
    report = sweep("longrun.capstone.correct:subject_short", tmp_path, FEW, SMALL, profile="posix")
    assert report.verdict == "consistent", str(report)
    assert all(count.judged >= 30 for count in report.faults), str(report)
    assert [count.fault for count in report.faults] == ["kill", "power", "damage", "recovery", "error"]
    for at in (3, 100, 200):
        race = sweep("longrun.capstone.correct:subject_short", tmp_path, "race", ONE, only=f"race@{at}")
        assert race.verdict == "consistent", str(race)


@pytest.mark.full
@pytest.mark.parametrize("name", ["subject", "subject_hasty"])
@pytest.mark.parametrize("faults", ["kill,power", "recovery", "error", "damage", "race"])
def test_the_whole_harness_is_clean_within_large_bounds(name: str, faults: str, tmp_path: Path) -> None:
    """Both personas, each family."""
    subject = f"{name}_short" if faults == "damage" else name
    report = sweep(f"longrun.capstone.correct:{subject}", tmp_path, faults, LARGE)
    assert report.verdict == "consistent", str(report)
    assert all(count.judged > 100 for count in report.faults), str(report)


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.full) for name in (*SCENES, "subject_poison")])
def test_the_scenes_are_clean(name: str, tmp_path: Path) -> None:
    """A fresh start, a question, a cap, a poisonous call, at every kill; all but the last at second kills too."""
    faults = "kill" if name == "subject_poison" else "kill,recovery"
    report = sweep(f"longrun.capstone.correct:{name}", tmp_path, faults, LARGE)
    assert report.verdict == "consistent", str(report)
    assert all(count.judged > 50 for count in report.faults), str(report)


@pytest.mark.full
@pytest.mark.parametrize("name", ["longrun.capstone.correct:subject_turns", "longrun.effects.correct:subject_hasty"])
def test_whichever_recovery_loses_power_the_next_one_goes_on(name: str, tmp_path: Path) -> None:
    """Not some recoveries but all: also one that begins between the first save and the ledger."""
    budget = Budget(states=100_000, real_kills=1, nested=1_000, subset=2, sample=20, time_s=1_500.0)
    report = sweep(name, tmp_path, "recovery", budget, profile="btrfs,posix")
    assert report.verdict == "consistent", str(report)
    assert not any("states not chosen" in note and " 0 states" not in note for note in report.notes), report.notes


# --- the table ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("defect", DEFECTS)
def test_each_defect_has_its_module_and_is_found(defect: int) -> None:
    """The page of longrun names the module and the row of the test above for each defect of this lesson."""
    module, row = DEFECTS[defect]
    page = Path(next(iter(longrun.__path__)), "README.md").read_text()
    [line] = [line for line in page.splitlines() if line.startswith(f"| {defect} |")]
    assert f"`{module}`" in line
    assert f'"{row}"' in line
    assert PLANTED[row].module.__name__ == f"longrun.{module.replace('/', '.')}"


def test_no_module_of_the_lesson_is_forgotten() -> None:
    """Every naive module of the folder has a row."""
    folder = Path(correct.__file__).parent
    assert {path.stem for path in folder.glob("naive_*.py")} == {
        planted.module.__name__.rpartition(".")[2] for planted in PLANTED.values()
    }
