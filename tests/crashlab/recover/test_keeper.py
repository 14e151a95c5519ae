"""Whatever ends the main process, and whenever: two seconds later no process and no folder of the lab is left."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
import uuid
from typing import TYPE_CHECKING

import pytest

import crashlab

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LIMIT_S = 120.0


class Doomed:
    """A main process with a mark in its environment, by which everything that it started is known."""

    def __init__(self, folder: Path, moment: str, *, namespace: bool = True) -> None:
        self.temporary, self.ready, self._mark = folder / "temporary", folder / "ready", f"MARK={uuid.uuid4()}"
        self.temporary.mkdir()
        os.mkfifo(self.ready)
        lab = os.path.dirname(os.path.dirname(crashlab.__file__))
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.crashlab.recover.doomed_main"],
            env={
                **os.environ,
                "PYTHONPATH": lab,
                "TMPDIR": str(self.temporary),
                "DOOMED_MOMENT": moment,
                "DOOMED_READY": str(self.ready),
                "CRASHLAB_NO_NAMESPACE": "" if namespace else "1",
                "MARK": self._mark.removeprefix("MARK="),
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )

    def wait_until_ready(self) -> None:
        """Return when the moment has come."""
        with open(self.ready, "rb"):
            pass

    def wait_for(self, words: str) -> None:
        """Until a process of it runs this: it was forked before the lab was ready, and may be on its way."""
        deadline = time.monotonic() + LIMIT_S
        while not any(words in line for line in self.alive()):
            assert time.monotonic() < deadline, words
            select.select([], [], [], 0.01)

    def alive(self) -> list[str]:
        """Command lines of everything with the mark."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/environ", "rb") as file:
                    if self._mark.encode() in file.read().split(b"\0"):
                        with open(f"/proc/{pid}/cmdline", "rb") as line:
                            found.append(line.read().replace(b"\0", b" ").decode(errors="replace")[:200])
            except OSError:
                continue
        return found

    def assert_nothing_left(self) -> None:
        """Nothing with the mark lives, and the temporary folder is empty, within the limit."""
        deadline = time.monotonic() + LIMIT_S
        while (left := [*self.alive(), *map(str, self.temporary.iterdir())]) and time.monotonic() < deadline:
            select.select([], [], [], 0.02)
        assert left == []


@pytest.fixture
def doomed(tmp_path: Path) -> Iterator[list[Doomed]]:
    """Main processes of one test; what a failing test leaves is ended."""
    started: list[Doomed] = []
    yield started
    for each in started:
        each.process.kill()
        each.process.communicate()
        assert tmp_path.exists()


MOMENTS = ["import", "record", "recover", "recover in interpreters", "race"]


@pytest.mark.parametrize("moment", MOMENTS)
def test_sigkill_leaves_nothing(doomed: list[Doomed], tmp_path: Path, moment: str) -> None:
    """SIGKILL while the subject is imported, recorded, recovered or stopped beside a second owner; a daemon lives."""
    doomed.append(main := Doomed(tmp_path, moment))
    main.wait_until_ready()
    main.wait_for("sleep 600")
    assert list(main.temporary.iterdir()) != []
    main.process.kill()
    main.process.wait()
    main.assert_nothing_left()


def test_sigkill_leaves_nothing_without_a_namespace(doomed: list[Doomed], tmp_path: Path) -> None:
    """The same where states are written into the folder itself."""
    doomed.append(main := Doomed(tmp_path, "recover", namespace=False))
    main.wait_until_ready()
    main.process.kill()
    main.process.wait()
    main.assert_nothing_left()


@pytest.mark.parametrize("moment", ["recover", "race"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_other_deaths_leave_nothing(doomed: list[Doomed], tmp_path: Path, number: signal.Signals, moment: str) -> None:
    """SIGTERM, and Ctrl-C, which is an exception in the main process."""
    doomed.append(main := Doomed(tmp_path, moment))
    main.wait_until_ready()
    main.process.send_signal(number)
    main.process.wait(LIMIT_S)
    main.assert_nothing_left()


@pytest.mark.parametrize("delay_s", [0.0, 0.03, 0.06, 0.1, 0.15])
def test_sigkill_while_the_lab_starts(doomed: list[Doomed], tmp_path: Path, delay_s: float) -> None:
    """At several moments between the first process and the first recording."""
    doomed.append(main := Doomed(tmp_path, "record"))
    assert main.process.stdout is not None
    assert main.process.stdout.readline() == b"starting\n"
    select.select([], [], [], delay_s)  # chooses the moment; nothing is waited for
    main.process.kill()
    main.process.wait()
    main.assert_nothing_left()
