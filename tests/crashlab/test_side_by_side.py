"""Several checks at the same time, each in a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import crashlab
from crashlab.side_by_side import check_side_by_side

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def _find_the_subjects(monkeypatch: pytest.MonkeyPatch) -> None:
    """The checks must find the lab and the tests, wherever they run."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(Path(crashlab.__file__).parents[1]), str(ROOT)]))


def test_results_come_in_the_order_of_the_subjects(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Whichever ends first, each with its own options; one that cannot be checked has no report but its own code."""
    told: list[tuple[str, int, int]] = []
    subjects = [f"tests.crashlab.subjects:{name}" for name in ("CHECKED_BAD", "SMALL", "NO_SUCH")]
    pairs = [
        (subject, [f"--faults={faults}"]) for subject, faults in zip(subjects, ("power", "kill", "kill"), strict=True)
    ]
    options = [f"--out={tmp_path}", "--budget=brief"]
    checked = check_side_by_side(pairs, options, at_a_time=2, progress=lambda *each: told.append(each))
    assert [each.subject for each in checked] == subjects
    assert [each.code for each in checked] == [1, 0, 64]
    assert [each.report.faults[0].fault for each in checked if each.report] == ["power", "kill"]
    assert [each.report.verdict if each.report else None for each in checked] == ["violation", "consistent", None]
    assert told[-1] == ("agents checked", 3, 3)
    assert "NO_SUCH" in capfd.readouterr().err


def test_an_interrupt_ends_every_check(tmp_path: Path) -> None:
    """The one who asked gets Ctrl-C alone; the checks that it started end too, and sweep their places."""
    program = (
        "from crashlab.side_by_side import check_side_by_side\n"
        "print('started', flush=True)\n"
        "check_side_by_side([('tests.crashlab.subjects:NEVER_ENDS_SOON', [])] * 2, ['--out=out'], at_a_time=2,\n"
        "    progress=lambda *_: print('tick', flush=True))\n"
    )
    started = subprocess.Popen(
        [sys.executable, "-c", program], cwd=tmp_path, stdout=subprocess.PIPE, start_new_session=True
    )
    assert started.stdout is not None
    while started.stdout.readline() != b"tick\n":
        continue
    started.send_signal(signal.SIGINT)
    started.wait(300)
    started.stdout.close()
    assert started.returncode != 0
    deadline = time.monotonic() + 300
    while (_alive(started.pid) or _at_work(tmp_path)) and time.monotonic() < deadline:
        continue
    assert not _alive(started.pid)
    assert _at_work(tmp_path) == []


def _alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def _at_work(folder: Path) -> list[str]:
    """The process ids of labs that a check in ``folder`` started: their keepers end last."""
    found = []
    for command in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if os.fsencode(folder) in command.read_bytes():
                found.append(command.parent.name)
        except OSError:  # it ended while we looked
            continue
    return found
