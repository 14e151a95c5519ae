"""A keeper that is forked instead of started: the same lab, and nothing of it outlives the proof."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from typing import TYPE_CHECKING

import pytest

from crashlab import Subject
from crashlab.errors import LabError
from crashlab.recover import ready, sweep, travel
from crashlab.recover.host import Host
from crashlab.recover.start import start_keeper
from tests.crashlab.recover.one_step import write_one

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.skipif(not ready.CAN_BE_READY, reason="processes are handed over by descriptor on Linux only")
LIMIT_S = 300.0


@pytest.fixture
def standby() -> Iterator[tuple[subprocess.Popen[bytes], ready.Ready]]:
    """Such a process and the connection to it, in the hand of this process alone."""
    process, link = ready.start(data_bytes=1 << 32)
    connection = ready.Ready(link.detach())
    yield process, connection
    connection.close()
    process.wait(LIMIT_S)


def test_a_host_is_the_same_with_a_keeper_that_was_forked(
    standby: tuple[subprocess.Popen[bytes], ready.Ready],
) -> None:
    """It records, it is below the ready process, and afterwards nothing of it lives."""
    process, connection = standby
    with ready.at_hand(connection), Host(travel.pack(Subject(write_one))) as host:
        below = sweep.descendants(process.pid)
        recording = host.record(timeout_s=20.0)
    assert len(below) > 2
    assert recording.how == "returned"
    connection.sweep(LIMIT_S)
    assert sweep.descendants(process.pid) == []
    assert ready.current() is None


def test_the_proof_ends_what_lives(
    standby: tuple[subprocess.Popen[bytes], ready.Ready], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A keeper whose main process still holds the connection is ended too; its folder is then its user's to remove."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    process, connection = standby
    with ready.at_hand(connection):
        keeper, control = start_keeper(None)
    assert sweep.descendants(process.pid) == [keeper.pid]
    with pytest.raises(subprocess.TimeoutExpired):
        keeper.wait(0.0)
    connection.sweep(0.0)
    keeper.wait(LIMIT_S)
    keeper.kill()  # it has ended, and that is no error
    control.close()


def test_one_that_is_gone_is_told(standby: tuple[subprocess.Popen[bytes], ready.Ready]) -> None:
    """To whoever asks for the proof, and to whoever wants a lab."""
    process, connection = standby
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    with pytest.raises(LabError, match="forks keepers"):
        connection.sweep(0.0)
    with ready.at_hand(connection), pytest.raises(LabError, match="forks keepers"):
        Host(travel.pack(Subject(write_one)))


PLACED = """
import os, time
from crashlab import Subject
SAW = [os.getcwd(), time.strftime("%Z", time.localtime(0))]
def run(lab):
    (lab.dir / "file").write_text("x")
    return SAW
SUBJECT = Subject(run)
"""


def test_a_subject_is_imported_at_the_same_place_and_time(
    standby: tuple[subprocess.Popen[bytes], ready.Ready], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ready process stands in the root folder and at no time zone; below it a check stands where it was started."""
    (tmp_path / "placed.py").write_text(PLACED)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TZ", "JST-9")
    saw = []
    for connection in (standby[1], None):
        with ready.at_hand(connection), Host(travel.pack("placed:SUBJECT")) as host:
            saw.append((host.record(timeout_s=20.0).value or {})["end"])
    assert saw == [[str(tmp_path), "JST"]] * 2
