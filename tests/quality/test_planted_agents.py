"""The naive agents: each found by its kind, clean once its one fault is mended, found under any name.

The mend is applied by the test: one attribute of the naive harness is given back its correct piece.
"""

from __future__ import annotations

import ast
import inspect
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from crashlab import Budget, Subject, explore
from longrun.checkpoint import (
    correct,
    naive_any_version,
    naive_b_only,
    naive_fixed_tmp,
    naive_fsync_after_rename,
    naive_fsync_wrong_file,
    naive_in_place,
    naive_no_checksum,
    naive_no_dirsync,
    naive_no_fsync,
    naive_none_on_error,
    naive_retry_fsync,
    naive_swallow_enospc,
)
from longrun.inbox import SHORT_BODY_BYTES
from longrun.resume import naive_drop_call, reconcile
from longrun.subjects import describe
from tests.quality import rewind_agents
from tests.quality.capstone_agents import PLANTED as CAPSTONE
from tests.quality.effects_agents import EFFECTS
from tests.quality.naive_agents import PLANTED

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from crashlab import Report
    from longrun.harness import Harness

FAST = Budget(real_kills=2)
BRIEF = Budget(real_kills=1, subset=2, violations=2)
NAIVE: dict[str, tuple[ModuleType, str, Harness]] = {
    "in place": (naive_in_place, "stuck", replace(naive_in_place.HARNESS, save=correct.save)),
    "B only": (
        naive_b_only,
        "duplicate-effect",
        replace(naive_b_only.HARNESS, save_points=naive_b_only.HARNESS.save_points | {"A", "S"}),
    ),
    "drop call": (
        naive_drop_call,
        "duplicate-effect",
        replace(naive_drop_call.HARNESS, reopen=reconcile.reopen),
    ),
}
"""Per naive module: the kind it must be found by, and its harness with the one fault mended. Kills show them."""

LOSING: dict[str, tuple[ModuleType, str, str]] = {
    "no fsync": (naive_no_fsync, "stuck", "ext4,xfs"),
    "no fsync of the directory": (naive_no_dirsync, "duplicate-effect", "ext4,xfs"),
    "fsync of the wrong file": (naive_fsync_wrong_file, "stuck", "xfs"),
    "fsync after the rename": (naive_fsync_after_rename, "stuck", "xfs"),
}
"""Per naive module that only a power loss finds out: the kind, and file systems that show it.

The mended one is the correct agent: its save is the one piece in which they differ.
"""

DAMAGED: dict[str, tuple[ModuleType, str, str]] = {
    "no checksum": (naive_no_checksum, "accepted-damage", "damage:bit"),
    "any version": (naive_any_version, "accepted-damage", "damage:version"),
    "none on error": (naive_none_on_error, "silent-reset", "damage:empty,damage:nested,damage:foreign"),
}
"""Per naive module that only damage at rest finds out: the kind, and kinds of damage that show it.

The mended one loads as the correct agent does.
"""


ERRING = (naive_swallow_enospc, naive_retry_fsync)
"""Naive modules that only an I/O error finds out: ``test_planted_errors``."""


def kinds(report: Report) -> set[str]:
    """The kinds of the findings."""
    return {finding.kind for finding in report.findings}


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Report]:
    """The report on all kills of the naive module of a fault, made once."""

    @cache
    def sweep(fault: str) -> Report:
        module, _, _ = NAIVE[fault]
        return explore(f"{module.__name__}:subject", faults="kill", out=tmp_path_factory.mktemp("swept"), budget=FAST)

    return sweep


@pytest.mark.parametrize("fault", NAIVE)
def test_the_fault_is_found_by_its_kind(fault: str, swept: Callable[[str], Report]) -> None:
    """The naive module is a violation of the stated kind, and of nothing graver."""
    _, kind, _ = NAIVE[fault]
    report = swept(fault)
    assert report.verdict == "violation"
    assert report.findings[0].kind == kind, str(report)
    assert not report.unmeasured


@pytest.mark.parametrize("fault", NAIVE)
def test_mended_it_is_clean(fault: str, tmp_path: Path) -> None:
    """With its one piece put right the same harness passes every state."""
    _, _, mended = NAIVE[fault]
    subject = describe(mended, name="mended", body_bytes=SHORT_BODY_BYTES)
    report = explore(subject, faults="kill", out=tmp_path, budget=FAST)
    assert report.verdict == "consistent", str(report)


def test_a_half_file_is_what_is_found_in_place(swept: Callable[[str], Report]) -> None:
    """States inside the write, with the first pages there, are among the stuck ones."""
    report = swept("in place")
    cut = [finding for finding in report.findings for each in (finding.id, *finding.same) if "+" in each]
    assert cut
    assert kinds(report) == {"stuck"}


@pytest.mark.parametrize("fault", LOSING)
def test_a_missing_sync_is_found_by_power_losses_alone(fault: str, tmp_path: Path) -> None:
    """Kills find nothing at all; a power loss finds the stated kind, and the advice names a sync of the right thing."""
    module, kind, profile = LOSING[fault]
    path = f"{module.__name__}:subject"
    report = explore(path, faults="kill,power", profile=profile, out=tmp_path, budget=replace(BRIEF, lost=12))
    kill, power = report.faults
    assert (kill.violation, power.violation > 0) == (0, True), str(report)
    assert (report.verdict, report.findings[0].kind) == ("violation", kind), str(report)
    wanted = "fsync the directory of checkpoint.json" if module is naive_no_dirsync else "fsync checkpoint.json."
    assert report.findings[0].advice[0].startswith(wanted)
    assert {each.partition("[")[0] for finding in report.findings for each in finding.profiles} <= {"ext4", "xfs"}


FEW_DAMAGES = "damage:empty,damage:truncate,damage:missing,damage:foreign,damage:version"
FILES = len(("checkpoint.json", "effects.jsonl", "lease.lock"))
MOMENTS = len(("before the last effect", "the end"))


@pytest.mark.parametrize("fault", DAMAGED)
def test_blindness_to_damage_is_found_by_damage_alone(fault: str, tmp_path: Path) -> None:
    """Kills find nothing; damage finds the stated kind, and nothing but it; the correct load stands that state."""
    module, kind, faults = DAMAGED[fault]
    budget = replace(FAST, lost=12)  # of hundreds
    report = explore(f"{module.__name__}:subject", faults=f"kill,{faults}", out=tmp_path, budget=budget)
    kill, damage = report.faults
    assert (kill.violation, damage.violation > 0) == (0, True), str(report)
    assert (report.verdict, kinds(report)) == ("violation", {kind}), str(report)
    assert not report.unmeasured, str(report)
    assert {finding.disk[0].path for finding in report.findings} == {"checkpoint.json"}
    subject = describe(replace(module.HARNESS, load=correct.load), name="mended")
    mended = explore(subject, faults="damage", only=report.findings[0].id, out=tmp_path, budget=FAST)
    assert (mended.verdict, mended.faults[0].judged) == ("consistent", 1), str(mended)


@pytest.mark.full  # each bit of a short checkpoint; one state of each is in the quick profile
@pytest.mark.parametrize("fault", DAMAGED)
def test_with_the_correct_load_all_damage_is_met(fault: str, tmp_path: Path) -> None:
    """The one piece put right, no state is a violation."""
    module, _, faults = DAMAGED[fault]
    subject = describe(replace(module.HARNESS, load=correct.load), name="mended", body_bytes=SHORT_BODY_BYTES)
    mended = explore(subject, faults=faults, out=tmp_path, budget=FAST)
    assert mended.verdict == "consistent", str(mended)


def test_the_correct_agent_meets_damage_of_every_file(tmp_path: Path) -> None:
    """All three files, at both moments, each kind that makes few states: what the next test has with all kinds."""
    report = explore("longrun.checkpoint.correct:subject", faults=FEW_DAMAGES, out=tmp_path, budget=FAST)
    assert report.verdict == "consistent", str(report)
    assert not report.unmeasured
    (damage,) = report.faults
    assert damage.points == FILES * MOMENTS
    assert damage.refused > 0 < damage.consistent
    assert all(control.passed for control in report.controls)


@pytest.mark.full  # more than a thousand states
def test_the_correct_agent_meets_every_kind_of_damage(tmp_path: Path) -> None:
    """All three files, at both moments, every kind: no violation, nothing unmeasured, the undamaged twins recovered."""
    report = explore("longrun.checkpoint.correct:subject", faults="damage", out=tmp_path, budget=FAST)
    assert report.verdict == "consistent", str(report)
    assert not report.unmeasured
    (damage,) = report.faults
    assert damage.points == FILES * MOMENTS
    assert (damage.violation, damage.unmeasured, damage.judged > 1_000) == (0, 0, True)
    assert damage.refused > damage.consistent > 0
    assert all(control.passed for control in report.controls)


@pytest.mark.parametrize("fault", NAIVE)
def test_a_renamed_copy_is_found_just_the_same(
    fault: str, swept: Callable[[str], Report], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without its name, its docstring and its title the code is found by what it does, in the same state."""
    module, kind, _ = NAIVE[fault]
    tree = ast.parse(inspect.getsource(module))
    tree.body = tree.body[1:]  # the docstring says which fault it is
    text = ast.unparse(tree).replace(f"{module.__name__.removeprefix('longrun.').replace('.', '/')}", "agent")
    assert "naive" not in text
    (tmp_path / "plain_agent.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    place = swept(fault).findings[0].id
    report = explore("plain_agent:subject", faults="kill", only=place, out=tmp_path / "out", budget=FAST)
    assert [(finding.id, finding.kind) for finding in report.findings] == [(place, kind)], str(report)


@pytest.mark.parametrize("name", ["subject", "subject_hasty"])
def test_the_correct_agent_is_clean_and_widely_tried(name: str, tmp_path: Path) -> None:
    """Both personas, kills and power losses of every profile: no violation, nothing unmeasured, as many as promised."""
    profile = "ext4,xfs,btrfs,posix" if name == "subject" else "posix"
    report = explore(f"longrun.checkpoint.correct:{name}", profile=profile, out=tmp_path)
    assert report.verdict == "consistent", str(report)
    assert not report.unmeasured
    kill, power = report.faults
    assert kill.judged + power.judged - power.known > 300
    assert kill.inside >= 30
    assert (report.trace.acks >= 20, report.trace.effects >= 8) == (True, True)
    assert all(control.passed for control in report.controls)


@pytest.mark.parametrize("seed", [3, pytest.param(11, marks=pytest.mark.full)])  # one other inbox is another one
def test_another_inbox_comes_out_the_same(seed: int, tmp_path: Path) -> None:
    """Neither fault nor cure hangs on the one inbox of the demonstration."""
    good, bad = (
        explore(
            describe(harness, name="agent", seed=seed, body_bytes=SHORT_BODY_BYTES),
            faults="kill",
            out=tmp_path,
            budget=FAST,
        )
        for harness in (correct.HARNESS, naive_b_only.HARNESS)
    )
    assert (good.verdict, kinds(bad)) == ("consistent", {"duplicate-effect"}), f"{good}\n{bad}"


def test_no_naive_module_is_forgotten() -> None:
    """Every naive module of the agent stands here, in the tests of errors or races, or in the table of lessons.

    Those of the event log have a test of their own, beside the other tests of logs.
    """
    folder = Path(correct.__file__).parents[1]
    found = {path.stem for path in folder.rglob("naive_*.py") if path.parent.name != "eventlog"}
    modules = [module for module, _, _ in (*NAIVE.values(), *LOSING.values(), *DAMAGED.values())] + [*ERRING]
    modules += [planted.module for planted in CAPSTONE.values()]
    modules += [naive_fixed_tmp, *(planted.module for planted in (PLANTED | EFFECTS).values())]
    modules += [planted.module for planted in rewind_agents.PLANTED.values()]
    assert found == {module.__name__.rpartition(".")[2] for module in modules}
    assert all(isinstance(module.subject, Subject) for module in modules)
