"""Every planted fault that only two owners show is found, by its kind; correct twins stay clean, and refuse aloud."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from crashlab import Budget, Policy, Store, explore
from crashlab.race_judge import RaceJudge
from crashlab.replay import replay
from crashlab.report.folder import RunFolder
from longrun.checkpoint import correct, naive_fixed_tmp
from longrun.protocol import Checkpoint
from tests.quality import racing_stores as stores

if TYPE_CHECKING:
    from pathlib import Path

    from crashlab import Log, Report, Subject

SHORT = Budget(real_kills=0, sample=25)
LONG = replace(SHORT, sample=200)
FOUND: dict[str, tuple[Store | Log | Subject, set[str], str]] = {
    "one temporary name": (stores.FIXED_NAME, {"torn", "stuck"}, "a name of its own"),
    "one temporary name, cut to length": (stores.KEEPS_THE_TAIL, {"torn", "stuck"}, "a name of its own"),
    "in place": (stores.IN_PLACE, {"lost", "stuck"}, "rename it over the old one"),
    "read, change, write": (stores.REWRITES, {"lost"}, "from before reading until after writing"),
    "at an offset of its own": (stores.AT_AN_OFFSET, {"lost"}, "O_APPEND"),
    "unkeyed effect": (stores.UNKEYED, {"duplicate-effect"}, "Take an OS lock"),
    "lock file without a number yet": (stores.LOCK_FILE, {"duplicate-effect"}, "Take an OS lock"),
    "lock file for ever": (stores.NEVER_GIVES_BACK, {"hang"}, "ends with its process"),
    "no fence": (stores.NO_FENCE, {"stale-write"}, "read it again before each save"),
}
"""Per fault: the subject, the kinds that must be found, a part of the advice."""

CLEAN: dict[str, Store | Log | Subject] = {
    "a name of its own": stores.UNIQUE_NAME,
    "rewritten under a lock": stores.REWRITES_UNDER_A_LOCK,
    "appended": stores.APPENDS,
    "keyed effect": stores.KEYED,
    "locked": stores.LOCKED,
    "waiting for the lock": stores.WAITING,
    "fence": stores.FENCE,
}


def raced(subject: Store | Log | Subject | str, out: Path, **options: Any) -> Report:
    """The report on a race alone."""
    return explore(subject, **{"faults": "race", "budget": SHORT, "out": out, **options})


@pytest.mark.parametrize("name", FOUND)
def test_planted_fault_is_found(name: str, tmp_path: Path) -> None:
    """A subject with one fault is a violation of the stated kind, with advice that names the way out."""
    subject, kinds, advice = FOUND[name]
    report = raced(subject, tmp_path, budget=LONG if subject is stores.LOCK_FILE else SHORT)
    assert report.verdict == "violation", str(report)
    assert kinds <= {finding.kind for finding in report.findings}, str(report)
    assert any(advice in " ".join(finding.advice) for finding in report.findings), str(report)
    assert all(finding.fault == "race" and finding.id.startswith("race@") for finding in report.findings)


@pytest.mark.parametrize("name", CLEAN)
def test_correct_twin_is_clean(name: str, tmp_path: Path) -> None:
    """A correct one stands a second owner after every op, and none is left unmeasured."""
    report = raced(CLEAN[name], tmp_path)
    assert report.verdict == "consistent", str(report)
    [count] = report.faults
    assert count.points == report.trace.ops + 1
    assert count.judged == count.consistent + count.refused > 1


@pytest.mark.parametrize("after", [2, pytest.param(None, marks=pytest.mark.full)])  # each race waits for seconds
def test_who_polls_for_a_lock_is_clean(after: int | None, tmp_path: Path) -> None:
    """A loop that looks again and again waits as well as a lock does."""
    report = raced(stores.POLLING, tmp_path, **({"only": f"race@{after}"} if after else {}))
    assert report.verdict == "consistent", str(report)
    assert report.faults[0].judged > 0


@pytest.mark.parametrize("subject", [stores.LOCKED, stores.FENCE])
def test_a_lease_refuses_aloud(subject: Subject, tmp_path: Path) -> None:
    """The second owner stays out by an error, or the first one is refused at its next save."""
    [count] = raced(subject, tmp_path).faults
    assert count.refused > 1


def test_declared_owners_must_be_fenced(tmp_path: Path) -> None:
    """With ``refuse=True`` a save of an older owner that begins after the takeover must be refused."""
    policy = {"race": Policy(refuse=True)}
    report = raced(stores.EPOCH_AT_OPENING, tmp_path, policy=policy)
    assert {finding.kind for finding in report.findings} == {"stale-write"}, str(report)
    assert "after the second one had taken over" in report.findings[0].summary


def test_a_fence_has_a_stated_limit_and_is_no_finding(tmp_path: Path) -> None:
    """A save that was past its check when the second owner entered is excused, and all later ones are refused."""
    report = raced(stores.EPOCHS, tmp_path, policy={"race": Policy(refuse=True)})
    assert report.verdict == "consistent", str(report)
    assert report.faults[0].refused > 1


def test_a_bare_save_has_no_owner_to_refuse(tmp_path: Path) -> None:
    """Without ``open`` and without a policy an error of a save is a finding; with one it is a refusal."""
    (found,) = (each for each in raced(stores.FIXED_NAME, tmp_path).findings if each.kind == "stuck")
    assert "FileNotFoundError" in found.summary
    assert "/dir/" not in found.summary
    allowed = raced(stores.FIXED_NAME, tmp_path, policy={"race": Policy(refuse=True)})
    assert "stuck" not in {finding.kind for finding in allowed.findings if "first owner raised" in finding.summary}


def test_two_owners_of_keyed_effects_are_told_of(tmp_path: Path) -> None:
    """Both did the work, nothing broke by it, and the report says so."""
    report = raced(stores.KEYED, tmp_path)
    assert any("neither owner was refused" in note for note in report.notes)


def test_an_honest_unknown_after_a_race_is_counted(tmp_path: Path) -> None:
    """Who meets a mark asks; and so does whoever comes after both owners."""
    report = raced(stores.ASKS_EVER_AFTER, tmp_path, only="race@4")
    assert report.verdict == "consistent", str(report)
    assert (report.faults[0].judged, report.faults[0].unknown) == (1, 1)


# --- checkpoints of the reference agent ------------------------------------------------------------

ASKED = ({"role": "user", "content": "triage the inbox"},)
CHECKPOINTS = [Checkpoint(run_id="r", task="triage" * size, messages=ASKED, seq=size) for size in (1, 2000)]


@pytest.mark.parametrize("module", [correct, naive_fixed_tmp])
def test_a_checkpoint_under_one_temporary_name_falls_to_a_race(module: Any, tmp_path: Path) -> None:
    """As a bare store: two writers of one file; the correct one gives one writer's whole value."""
    store = Store(
        module.HARNESS.save, module.HARNESS.load, values=CHECKPOINTS, view=lambda checkpoint: checkpoint.to_json()
    )
    report = raced(store, tmp_path)
    assert report.verdict == ("consistent" if module is correct else "violation"), str(report)
    assert all("one name" in finding.why for finding in report.findings)


# --- replay ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("subject", [stores.FIXED_NAME, stores.LOCK_FILE])
def test_an_id_is_tried_alone_and_replayed(subject: Store | Subject, tmp_path: Path) -> None:
    """The id of a finding lets the second owner in there, and nowhere else."""
    finding = raced(subject, tmp_path, budget=LONG if subject is stores.LOCK_FILE else SHORT).findings[0]
    stored = RunFolder.open(None, tmp_path)
    again = raced(subject, tmp_path, only=finding.id)
    assert [(each.id, each.kind) for each in again.findings] == [(finding.id, finding.kind)]
    assert again.faults[0].states == 1
    replayed = replay(stored, finding.id, into=tmp_path / "files")
    assert [(each.id, each.kind) for each in replayed.findings] == [(finding.id, finding.kind)]
    assert any((tmp_path / "files").iterdir())


# --- sabotage ----------------------------------------------------------------------------------------


def test_a_gate_that_never_stops_is_no_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A first owner that is never stopped leaves each race unmeasured: no second one was let in."""
    monkeypatch.setenv("PLANT_RACE", "never stops")
    report = raced("tests.quality.planted_race_faults:STORE", tmp_path)
    assert report.verdict == "unmeasured", str(report)
    assert "was to be stopped after op 0" in report.unmeasured[0].detail


def test_a_world_of_its_own_for_each_owner_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the outside forgot what the other owner did, the keyed program would be accused."""
    monkeypatch.setenv("PLANT_RACE", "one world each")
    assert raced("tests.quality.planted_race_faults:KEYED", tmp_path).verdict == "violation"


def test_a_judge_that_forgets_the_second_owner_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the second owner's effects the one that pays twice would pass."""
    whole = RaceJudge.ruling

    def forgetful(self: RaceJudge, state: Any, answer: Any) -> Any:
        mine = tuple(op for op in state.effects if op.thread == 0)
        state.__dict__["effects"] = mine
        return whole(self, state, answer)

    assert raced(stores.UNKEYED, tmp_path).verdict == "violation"
    monkeypatch.setattr(RaceJudge, "ruling", forgetful)
    found = {finding.kind for finding in raced(stores.UNKEYED, tmp_path).findings}
    assert "duplicate-effect" not in found
