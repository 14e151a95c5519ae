"""However the owner of a disk ends, nothing is left; and nothing of others is touched."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from crashlab.disk.disk import RealDisk
from crashlab.disk.sweep import PREFIX, folder_prefix, loops, mounts, start_time, sweep_left_over
from tests.crashlab.disk.needs import left_of, needs

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = needs("ext4")
LIMIT_MS = 30_000


@contextlib.contextmanager
def owner() -> Iterator[tuple[int, list[int]]]:
    """A busy owner, and pidfds of it, its keeper and its server."""
    program = [sys.executable, "-m", "tests.crashlab.disk.owner"]
    root = Path(__file__).parents[3]
    env = {**os.environ, "PYTHONPATH": f"{root}{os.pathsep}{root / 'lab'}"}
    with subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=env, cwd=root) as process:
        assert process.stdout is not None
        pids = [int(word) for word in process.stdout.readline().split()]
        descriptors = [os.pidfd_open(pid) for pid in pids]
        try:
            yield pids[0], descriptors
        finally:
            process.kill()
            process.wait()
            for descriptor in descriptors:
                os.close(descriptor)


def wait_for(descriptor: int) -> None:
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    assert poll.poll(LIMIT_MS), "the process did not end"


def write_synced(path: Path) -> None:
    with open(path, "wb") as file:
        file.write(b"x")
        os.fsync(file.fileno())


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_the_keeper_cleans_up_after_a_killed_owner(number: signal.Signals) -> None:
    """SIGKILL, SIGTERM or SIGINT in the middle of the work: keeper and server end, and nothing is left."""
    with owner() as (pid, (ours, keeper, server)):
        assert left_of(pid)
        signal.pidfd_send_signal(ours, number)
        for descriptor in (ours, keeper, server):
            wait_for(descriptor)
        assert left_of(pid) == []


def test_the_sweep_cleans_up_when_all_three_were_killed() -> None:
    """Owner, keeper and server killed at once: the mounts go with their namespace, the sweep takes the rest."""
    with owner() as (pid, descriptors):
        for descriptor in reversed(descriptors[:2]):
            signal.pidfd_send_signal(descriptor, signal.SIGKILL)
        for descriptor in descriptors:
            wait_for(descriptor)
        assert left_of(pid)
        done = "\n".join(sweep_left_over())
        assert f"{PREFIX}{pid}-" in done
        assert "detached /dev/loop" in done
        assert done.count("detached") == 2
        assert "removed" in done
        assert left_of(pid) == []


def test_the_server_holds_no_mount_of_a_disk() -> None:
    """Else, the last one of its namespace to end, it would wait for itself, and hang every sync of the machine."""
    with RealDisk("ext4") as first, RealDisk("ext4") as disk:
        for each in (first, disk):
            with open(f"/proc/{each._keeper.pid}/task/{each._keeper.pid}/children") as file:
                (server,) = file.read().split()
            assert PREFIX in Path(f"/proc/{each._keeper.pid}/mountinfo").read_text()
            assert PREFIX not in Path(f"/proc/{server}/mountinfo").read_text()
        first.renew()


def test_a_dead_server_is_an_error_and_nothing_hangs() -> None:
    """The disk's process is killed: the file system answers with errors, and closing still cleans up."""
    with RealDisk("ext4") as disk:
        with open(f"/proc/{disk._keeper.pid}/task/{disk._keeper.pid}/children") as file:
            server = os.pidfd_open(int(file.read().split()[0]))
        signal.pidfd_send_signal(server, signal.SIGKILL)
        wait_for(server)
        os.close(server)
        with pytest.raises(OSError, match=r"error|Read-only"):
            write_synced(disk.path / "dir" / "a")
    assert left_of(os.getpid()) == []


def test_the_sweep_leaves_the_living_and_the_strangers_alone() -> None:
    """A second disk starts, which sweeps: the first one works on, and a folder of another name stays."""
    with tempfile.TemporaryDirectory(prefix="no-crashlab-disk-1-2-") as stranger, RealDisk("ext4") as first:
        before = set(left_of(os.getpid()))
        with RealDisk("ext4"):
            assert sweep_left_over() == []
        assert set(left_of(os.getpid())) == before
        first.mark(1)
        assert os.listdir(first.path / "dir") == []
        assert Path(stranger).is_dir()


def test_a_folder_of_a_reused_pid_is_swept_and_one_of_ours_is_not(tmp_path: Path) -> None:
    """The start time tells two processes of one pid apart."""
    ours, dead = tmp_path / f"{folder_prefix()}a", tmp_path / f"{PREFIX}{os.getpid()}-1-a"
    ours.mkdir()
    dead.mkdir()
    assert sweep_left_over(tmp_path) == [f"removed {dead}"]
    assert ours.is_dir()
    assert start_time(os.getpid()) > 1
    assert not [text for text in (*mounts(), *loops().values()) if str(dead) in text]
