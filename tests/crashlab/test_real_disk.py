"""Checks on a real file system: what the kernel leaves of a run, met by the real recovery."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from crashlab import Budget, Commands, UsageError, explore, real_disk
from tests.crashlab.disk.needs import kinds, left_of, needs
from tests.crashlab.here import needs_strace
from tests.crashlab.subjects import DURABLE, SMALL

FEW = Budget(images=120, real_kills=1)
KINDS = kinds("ext4", "xfs", "btrfs")
OTHERS = [pytest.param(*each.values, marks=[*each.marks, pytest.mark.full]) for each in kinds("xfs", "btrfs")]
"""For what is dear, and tried on ext4 in the quick profile; what is small is tried on all three there."""


@pytest.mark.parametrize("kind", KINDS)
def test_a_save_without_sync_is_lost_on_a_real_disk(kind: str, tmp_path: Path) -> None:
    """What the model says of it came about for real; the finding says so and keeps the model's id."""
    report = explore(SMALL, faults="power", profile=kind, disk=kind, out=tmp_path, budget=FEW)
    assert report.verdict == "violation", str(report)
    confirmed = [finding for finding in report.findings if finding.confirmed == "real-disk"]
    assert {finding.kind for finding in confirmed} & {"lost", "stuck"}
    assert all(finding.id.startswith("power@") for finding in confirmed)
    [control] = [each for each in report.controls if each.control == "real-disk"]
    assert control.passed
    assert f"real {kind} disk" in control.detail
    assert not report.unmeasured
    assert not left_of(os.getpid())


@pytest.mark.parametrize("kind", KINDS)
def test_a_save_with_both_barriers_is_clean_on_a_real_disk(kind: str, tmp_path: Path) -> None:
    """The correct twin, on images of its own."""
    report = explore(DURABLE, faults="power", profile=kind, disk=kind, out=tmp_path, budget=FEW)
    assert report.verdict == "consistent", str(report)
    computed, real = report.faults
    assert (computed.fault, real.fault) == ("power", f"{kind} disk")
    assert real.states > 50
    assert real.distinct > 2


@needs("ext4")
def test_zeros_of_full_size_on_ext4_with_a_slow_disk(tmp_path: Path) -> None:
    """Held data writes: the rename and the size are there, the bytes are not."""
    report = explore(
        "longrun.checkpoint.naive_no_fsync:subject",
        faults="power",
        profile="ext4",
        disk="ext4",
        out=tmp_path,
        budget=Budget(images=400, real_kills=1, subset=2, violations=2),
    )
    [finding] = [each for each in report.findings if each.confirmed == "real-disk"]
    assert finding.kind == "stuck"
    folder = Path(report.run)
    assert any("d0" in state for state in (finding.id, *finding.same)), str(report)
    assert (folder / "report.json").exists()


@pytest.mark.parametrize("kind", [*kinds("ext4"), *OTHERS])
def test_the_correct_agent_is_clean_on_a_real_disk(kind: str, tmp_path: Path) -> None:
    """The reference agent on a file system of its own."""
    budget = Budget(images=120, real_kills=1, subset=2)
    report = explore(
        "longrun.checkpoint.correct:subject", faults="power", profile=kind, disk=kind, out=tmp_path, budget=budget
    )
    assert report.verdict == "consistent", str(report)
    assert report.faults[1].judged > 20


@needs_strace
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("sync", "verdict"), [("", "violation"), ("sync -f {dir}; ", "consistent")])
def test_a_program_meets_a_real_disk_too(kind: str, sync: str, verdict: str, tmp_path: Path) -> None:
    """What it was seen to do is done again there, op by op; its own recovery meets the images."""
    start = f'echo one > {{dir}}/new; mv {{dir}}/new {{dir}}/value; {sync}echo ack 1 >> "$CRASHLAB_EVENTS"'
    check = 'if grep -q ack "$CRASHLAB_EVENTS"; then grep -sq one {dir}/value || exit 1; fi'
    subject = Commands(start, ["true"], view=["true"], check=check, name="value")
    report = explore(subject, faults="power", profile=kind, disk=kind, out=tmp_path, budget=FEW)
    assert report.verdict == verdict, str(report)
    assert not report.unmeasured
    computed, real = report.faults
    assert real.states > 20
    assert (computed.violation > 0) == (real.violation > 0)
    assert any(finding.confirmed == "real-disk" for finding in report.findings) == (real.violation > 0)
    assert any("done again there op by op" in note for note in report.notes)
    assert not left_of(os.getpid())


@needs("ext4")
def test_an_image_outside_the_model_lets_nothing_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model that denies what a disk shows is not believed, and accuses nobody."""
    monkeypatch.setattr(real_disk, "within", lambda *_: False)
    report = explore(SMALL, faults="power", profile="ext4", disk="ext4", out=tmp_path, budget=FEW)
    assert report.verdict == "unmeasured"
    assert "real-disk-disagrees" in {reason.code for reason in report.unmeasured}
    assert not all(control.passed for control in report.controls)


def test_where_no_disk_can_be_made_the_reason_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Never a silent skip."""
    monkeypatch.setattr("crashlab.disk.available.missing", lambda _: "mkfs.xfs is not installed; install xfsprogs")
    with pytest.raises(UsageError, match=r"no real xfs disk .* install xfsprogs.*leave out the disk"):
        explore(SMALL, disk="xfs", out=tmp_path)


def test_an_unknown_kind_is_refused(tmp_path: Path) -> None:
    """With what there is."""
    with pytest.raises(UsageError, match="unknown profile 'zfs'"):
        explore(SMALL, disk="zfs", out=tmp_path)
    with pytest.raises(UsageError, match="no disk carries 'posix'"):
        explore(SMALL, disk="posix", out=tmp_path)


@needs("ext4")
def test_nothing_is_left_after_our_own_death(tmp_path: Path) -> None:
    """SIGKILL in the middle of a check on a disk: its keepers clear up without it."""
    code = (
        "import glob, os, signal, sys, crashlab.real_disk as r\n"
        "from crashlab import explore\n"
        "from tests.crashlab.subjects import SMALL\n"
        "def dying(*a, **k):\n"
        "    mine = [open(path).read().split() for path in glob.glob('/proc/self/task/*/children')]\n"
        "    print(*sum(mine, []), flush=True)\n"
        "    sys.stdin.readline()\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "r.images = dying\n"
        "explore(SMALL, faults='power', disk='ext4', out='out')\n"
    )
    root = Path(__file__).parents[2]
    env = {**os.environ, "PYTHONPATH": f"{root}{os.pathsep}{root / 'lab'}"}
    with subprocess.Popen(
        [sys.executable, "-c", code], cwd=tmp_path, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as died:
        assert died.stdin is not None
        assert died.stdout is not None
        keepers = [os.pidfd_open(int(pid)) for pid in died.stdout.readline().split()]
        died.stdin.close()
        assert died.wait(60) == -signal.SIGKILL
    for keeper in keepers:
        assert select.select([keeper], [], [], 30)[0], "a keeper outlived what it kept"
        os.close(keeper)
    assert keepers
    assert not left_of(died.pid)
