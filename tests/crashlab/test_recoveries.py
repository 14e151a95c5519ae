"""Recoveries recorded, ids of any depth followed: in a check with ``only``, in a replay, and down to depth two."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING

import pytest

from crashlab import Budget, Policy, UsageError, explore
from crashlab.confirm import Death
from crashlab.crash.states import prefixes_of
from crashlab.demands import Reference
from crashlab.recover import travel
from crashlab.recover.host import Host
from crashlab.recoveries import Recoveries
from crashlab.replay import replay
from crashlab.report.folder import RunFolder
from crashlab.trace import Effect, Trace
from tests.quality import interrupted, programs

if TYPE_CHECKING:
    from pathlib import Path

    from crashlab.report.model import Report

FAST = Budget(real_kills=2)
LOSES = "tests.quality.interrupted:TAKES_AWAY"


@pytest.fixture(scope="module")
def checked(tmp_path_factory: pytest.TempPathFactory) -> tuple[Report, Path]:
    """The program that takes its state away, checked once, and the folder of its run."""
    out = tmp_path_factory.mktemp("out")
    return explore(LOSES, faults="kill,power,recovery", out=out, budget=FAST), out


def test_only_judges_the_one_state_again(checked: tuple[Report, Path], tmp_path: Path) -> None:
    """With its id alone the state is recorded anew and comes out the same, to the digest."""
    finding = checked[0].findings[0]
    report = explore(LOSES, faults="kill,power,recovery", only=finding.id, out=tmp_path, budget=FAST)
    assert [(each.id, each.kind, each.digest) for each in report.findings] == [
        (finding.id, finding.kind, finding.digest)
    ]
    assert report.faults[-1].judged == 1


def test_every_finding_is_replayed_from_its_run(checked: tuple[Report, Path], tmp_path: Path) -> None:
    """Each stored finding fails in the same way, on the same bytes, with its files to look at."""
    report, out = checked
    for number, finding in enumerate(report.findings):
        into = tmp_path / str(number)
        again = replay(RunFolder.open(None, out), finding.id, into=into)
        assert again.verdict == "violation", str(again)
        assert [(each.id, each.kind, each.digest) for each in again.findings] == [
            (finding.id, finding.kind, finding.digest)
        ]
        assert (into / "dir").is_dir()


def test_a_state_that_is_no_finding_is_recorded_for_its_replay(checked: tuple[Report, Path]) -> None:
    """The recovery of a state that nobody stored runs again."""
    assert replay(RunFolder.open(None, checked[1]), "kill@0/kill@0").verdict == "consistent"


def test_a_replay_that_meets_other_bytes_says_so(checked: tuple[Report, Path]) -> None:
    """A digest that is not the stored one stands in the notes."""
    report, out = checked
    run = RunFolder.open(None, out)
    stored = json.loads((run.path / "report.json").read_text())
    stored["findings"][0]["digest"] = "0" * 32
    (run.path / "report.json").write_text(json.dumps(stored))
    again = replay(run, report.findings[0].id)
    assert any("other bytes" in note for note in again.notes)


def test_an_id_that_no_recovery_leaves_is_refused(tmp_path: Path) -> None:
    """An op that the recovery does not have is told by its own number."""
    with pytest.raises(UsageError, match=r"no op 99 in the recovery from kill@3 \(\d+ ops\): kill@3/kill@99 comes"):
        explore(LOSES, faults="recovery", only="kill@3/kill@99", out=tmp_path)
    with pytest.raises(UsageError, match="no crash of a recovery"):
        explore(LOSES, faults="recovery", only="kill@3/fire@1", out=tmp_path)
    with pytest.raises(UsageError, match="belongs to none of the faults"):
        explore(LOSES, faults="kill", only="kill@3/kill@1", out=tmp_path)


def test_depth_two_kills_the_recovery_from_a_killed_recovery(tmp_path: Path) -> None:
    """With two crashes of recoveries there are states of both depths, and the correct program bears them all."""
    deep = explore(interrupted.PUTS_BACK, faults="kill,recovery[depth=2]", out=tmp_path, budget=FAST)
    flat = explore(interrupted.PUTS_BACK, faults="kill,recovery", out=tmp_path, budget=FAST)
    assert (deep.verdict, flat.verdict) == ("consistent", "consistent"), str(deep)
    assert deep.faults[-1].points > flat.faults[-1].points


def test_what_only_a_third_crash_shows_is_found_at_depth_two(tmp_path: Path) -> None:
    """A recovery that bears one crash and not two is clean at depth one; its id has three crashes."""
    subject = interrupted.BEARS_ONE
    flat = explore(subject, faults="kill,recovery", out=tmp_path, budget=FAST)
    deep = explore(subject, faults="kill,recovery[depth=2]", out=tmp_path, budget=FAST)
    assert flat.verdict == "consistent", str(flat)
    assert deep.verdict == "violation"
    finding = deep.findings[0]
    assert finding.id.count("/") == 2
    assert len(finding.crashes) == 2
    again = replay(RunFolder.open(None, tmp_path), finding.id)
    assert [(each.id, each.digest) for each in again.findings] == [(finding.id, finding.digest)]


def test_what_only_a_fourth_crash_shows_is_found_at_depth_three(tmp_path: Path) -> None:
    """A recovery that bears two crashes and not three is clean at depth two; three of its own crashes are told."""
    two, three = (
        explore(interrupted.BEARS_TWO, faults=f"kill,recovery[depth={depth}]", out=tmp_path, budget=FAST)
        for depth in (2, 3)
    )
    assert two.verdict == "consistent", str(two)
    assert three.verdict == "violation", str(three)
    finding = three.findings[0]
    assert (finding.id.count("/"), len(finding.crashes)) == (3, 3)
    again = replay(RunFolder.open(None, tmp_path), finding.id)
    assert [(each.id, each.digest) for each in again.findings] == [(finding.id, finding.digest)]


def test_a_full_budget_goes_to_depth_two_by_itself(tmp_path: Path) -> None:
    """Every state of every recovery is tried, none by chance, and the third crash is found."""
    budget = dataclasses.replace(Budget.of("full"), real_kills=2)
    report = explore(interrupted.BEARS_ONE, faults="kill,recovery", out=tmp_path, budget=budget)
    assert report.verdict == "violation"
    assert (report.faults[-1].sampled, report.faults[-1].skipped) == (0, 0)


def test_time_that_ends_before_the_bound_is_no_pass(tmp_path: Path) -> None:
    """Without time for the recoveries the result is unmeasured, and says what to raise."""
    budget = dataclasses.replace(FAST, time_s=0.0)
    report = explore(interrupted.PUTS_BACK, faults="recovery", out=tmp_path, budget=budget)
    assert report.verdict == "unmeasured"
    assert "bound" in {reason.code for reason in report.unmeasured}


def test_fewer_recoveries_than_states_are_told_as_a_sample(tmp_path: Path) -> None:
    """With two recoveries allowed two are crashed, and what was left out is counted."""
    budget = dataclasses.replace(FAST, nested=2)
    report = explore(interrupted.PUTS_BACK, faults="kill,recovery", out=tmp_path, budget=budget)
    count = report.faults[-1]
    assert (report.verdict, count.points) == ("consistent", 2)
    assert count.sampled == count.reached > 0
    assert count.skipped > 0


def test_a_recovery_is_recorded_on_the_tree_that_it_is_given() -> None:
    """Host.record runs one step of the recovery there, with what was told before it, and may kill it for real."""
    with Host(travel.pack(interrupted.MAILS_KEYED)) as host:
        run = host.record(timeout_s=30)
        trace = Trace(root=run.root, base=run.base, ops=run.ops)
        host.prepare(trace)
        reference = Reference(kind="Subject", trace=trace, end=(run.value or {})["end"])
        recoveries = Recoveries(host, reference, profiles="ext4")
        effect = next(op.n for op in run.ops if isinstance(op, Effect))
        outer = prefixes_of(trace).killed(effect)
        recovery = recoveries.recovery(outer)
        again = [op for op in recovery.ops if isinstance(op, Effect)]
        assert [(op.key, op.counted) for op in again] == [("m1", False)]
        assert not recoveries.unmeasured
        killed = host.record(recovery=recoveries.request(outer), kill=(2, 0), timeout_s=30)
        assert (killed.how, len(killed.ops)) == ("signal", 2)
        assert killed.ops[0].KIND == recovery.told[0].KIND


def test_a_recovery_that_writes_unseen_is_unmeasured(tmp_path: Path) -> None:
    """What no op explains is a reason against a pass here too."""
    report = explore(interrupted.CHILD_WRITES, faults="kill,recovery", out=tmp_path, budget=FAST)
    assert report.verdict == "unmeasured"
    assert [reason.code for reason in report.unmeasured] == ["unseen-writer"]
    assert "recorder='strace' sees more" in report.unmeasured[0].next
    assert "recovery of kill@" in report.unmeasured[0].detail


def test_what_one_crash_shows_is_no_finding_of_a_second(tmp_path: Path) -> None:
    """The recovery does what the run does wrong, too; there is one finding, at the first crash."""
    report = explore(programs.PAYS_TWICE, faults="kill,recovery", out=tmp_path, budget=FAST)
    assert report.faults[-1].violation > 0
    (finding,) = report.findings
    assert "/" not in finding.id
    assert any("/" in each for each in finding.same)


def test_the_policy_of_the_fault_outside_holds(tmp_path: Path) -> None:
    """Where a kill may do an effect again, a kill of the recovery may."""
    lenient = {"kill": Policy(effects="at-least-once")}
    report = explore(interrupted.MAILS_AGAIN, faults="kill,recovery", policy=lenient, out=tmp_path, budget=FAST)
    assert report.verdict == "consistent", str(report)


def test_a_real_death_that_disagrees_takes_back_every_accusation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a recovery that is killed for real leaves something else than computed, the lab accuses nobody."""
    told = [Death("kill@2", ("dir/state: absent / file",))]
    monkeypatch.setattr("crashlab.nested_trial.kill_for_real", lambda *_arguments, **_options: told)
    report = explore(interrupted.TAKES_AWAY, faults="kill,recovery", out=tmp_path, budget=FAST)
    assert report.verdict == "unmeasured"
    (reason,) = (each for each in report.unmeasured if each.code == "real-kill-disagrees")
    assert "/kill@2: computed / real: dir/state" in reason.detail
