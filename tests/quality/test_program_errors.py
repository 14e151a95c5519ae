"""Programs in other languages under I/O errors: planted faults are found, correct twins stay clean.

Each keeps one number and acks each save; afterwards the number must be the last one acked, or the one after it.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from crashlab import Commands, explore
from crashlab.replay import replay
from crashlab.report.folder import RunFolder
from tests.crashlab.here import needs, needs_notices, needs_strace
from tests.quality import failing_stores as stores

if TYPE_CHECKING:
    from crashlab import Log, Store
    from crashlab.report.model import Report

PROGRAMS = Path(__file__).parent / "foreign"

pytestmark = [needs_strace, needs_notices]


def kept(*program: str, name: str) -> Commands:
    """A program that is called with ``write`` or ``load`` and its directory."""
    load = [*program, "load", "{dir}"]
    check = [sys.executable, "-S", "-E", str(PROGRAMS / "not_forgotten.py"), *load]
    return Commands([*program, "write", "{dir}"], load, check=check, name=name, timeout_s=20)


def script(how: str) -> Commands:
    return kept("sh", str(PROGRAMS / "saves.sh"), how, name=how)


@pytest.fixture(scope="session")
def saves(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The C program, compiled."""
    binary = tmp_path_factory.mktemp("saves") / "saves"
    subprocess.run(["cc", "-O1", "-o", str(binary), str(PROGRAMS / "saves.c")], check=True)
    return str(binary)


def tried(subject: Commands | Store | Log | str, tmp_path: Path, faults: str) -> Report:
    report = explore(subject, faults=faults, budget="brief", recorder="strace", out=tmp_path)
    assert report.settings.recorder == "strace"
    return report


# --- found -----------------------------------------------------------------------------------------


@needs("cc")
def test_a_c_program_that_retries_a_failed_fsync_is_found(tmp_path: Path, saves: str) -> None:
    """The second fsync returned 0; after a power loss what was acked is gone. Its twin that ends there is clean."""
    report = tried(kept(saves, "retries", name="retries"), tmp_path, "error:failed-fsync")
    assert report.verdict == "violation", report
    found = [finding for finding in report.findings if "failed-fsync/power@" in finding.id]
    assert found, report
    assert "write the whole value again" in " ".join(found[0].advice)
    assert "was acked" in found[0].summary
    again = replay(RunFolder(Path(report.run)), found[0].id)
    assert [finding.id for finding in again.findings] == [found[0].id], again


def test_a_script_that_ignores_a_failed_write_is_found(tmp_path: Path) -> None:
    """It acks what is not there, and exits with 0; under a short write too."""
    report = tried(script("ignores"), tmp_path, "error:ENOSPC,error:short-write")
    assert report.verdict == "violation", report
    ids = {finding.id for finding in report.findings}
    assert {"error@2:ENOSPC", "error@2:short-write"} & ids, report
    lines = [finding.fault_line for finding in report.findings]
    assert any(line.endswith(" until the run had ended") for line in lines), lines  # a program has no call that returns
    assert any("was acked" in finding.summary for finding in report.findings)


def test_a_script_that_ends_without_a_word_is_found(tmp_path: Path) -> None:
    """An exit code alone tells nobody what failed."""
    report = tried(script("silent"), tmp_path, "error:EIO")
    assert {finding.kind for finding in report.findings} == {"stuck"}, report
    assert "nothing on standard error" in report.findings[0].summary
    assert "standard error" in " ".join(report.findings[0].advice)


def test_a_script_that_starts_anew_where_it_cannot_read_is_found(tmp_path: Path) -> None:
    """A file that cannot be read is no empty one: what was acked is overwritten. Its twin ends, with a message."""
    report = tried(script("forgets"), tmp_path, "error:EIO-read")
    assert report.verdict == "violation", report
    assert any(finding.id.endswith("error@r1:EIO-read") for finding in report.findings), report
    assert any("was acked" in finding.summary for finding in report.findings), report
    again = replay(RunFolder(Path(report.run)), report.findings[0].id)
    assert again.verdict == "violation", again
    clean = tried(script("right"), tmp_path, "error:EIO-read")
    assert clean.verdict == "consistent", clean
    assert clean.faults[0].points > 1


MAPS = """
import mmap, os, sys
os.chdir(sys.argv[1])
fd = os.open("state", os.O_RDWR | os.O_CREAT, 0o644)
os.ftruncate(fd, 4096)
with mmap.mmap(fd, 4096) as pages:
    pages[0:1] = b"1"
    try: os.mkdir("made")
    except OSError: pass
    pages[0:1] = b"2"
"""


def test_a_program_with_a_mapped_file_meets_errors_and_is_met_again(tmp_path: Path) -> None:
    """It takes a directory for made that could not be; its stores into memory are seen in both runs."""
    start = [sys.executable, "-I", "-S", "-c", MAPS, "{dir}"]
    subject = Commands(start, ["true"], check=["test", "-d", "{dir}/made"], name="maps", timeout_s=20)
    report = tried(subject, tmp_path, "error:EIO")
    assert report.verdict == "violation", report
    assert report.unmeasured == ()
    run = RunFolder(Path(report.run))
    assert run.extra("reference.json")["traced"]["hold_us"] > 0
    made = next(op.n for op in run.trace().ops if op.KIND == "mkdir")
    again = replay(run, f"error@{made}:EIO")
    assert (again.verdict, again.unmeasured) == ("violation", ()), again


# --- clean -----------------------------------------------------------------------------------------


@needs("cc")
def test_a_c_program_that_ends_where_something_fails_is_left_alone(tmp_path: Path, saves: str) -> None:
    """Under every usual error at every op, each of which struck."""
    report = tried(kept(saves, "right", name="right"), tmp_path, "error")
    assert report.verdict == "consistent", report
    [count] = report.faults
    assert count.points > 2 * 2 * 5  # two saves of five ops, and more than two errors at most of them


def test_a_script_of_several_processes_is_left_alone(tmp_path: Path) -> None:
    """``mv`` and ``sync`` are processes of their own: their calls fail as well, and the script ends there."""
    report = tried(script("right"), tmp_path, "error:ENOSPC,error:failed-fsync")
    assert report.verdict == "consistent", report
    assert report.faults[0].points > 10


@pytest.mark.parametrize(
    ("subject", "faults", "kinds"),
    [
        (stores.RIGHT, "error:failed-fsync", set()),
        (stores.LEAVES_TMP, "error:failed-fsync", {"stuck"}),
        (stores.GLUED_LOG, "error:short-write", {"lost"}),
    ],
)
def test_a_python_subject_that_is_watched_from_outside(
    subject: Store | Log, faults: str, kinds: set[str], tmp_path: Path
) -> None:
    """The same call again, once the error has gone, is asked of it there too."""
    report = tried(subject, tmp_path, faults)
    assert {finding.kind for finding in report.findings} == kinds, report
    assert report.unmeasured == ()


# --- sabotage --------------------------------------------------------------------------------------


def test_what_cannot_be_refused_is_counted(tmp_path: Path) -> None:
    """A socket is made by bind, which always goes through: a note says so."""
    code = "import socket; socket.socket(socket.AF_UNIX).bind('s'); open('a', 'w').close()"
    subject = Commands(f'cd {{dir}} && rm -f s && {sys.executable} -S -E -c "{code}"', name="binds")
    report = tried(subject, tmp_path, "error:ENOSPC")
    assert any("1 of 2 ops cannot be made to fail from outside: 1 made by bind" in note for note in report.notes), (
        report
    )


@pytest.mark.parametrize("planted", ["never", "untold"])
def test_errors_that_never_strike_are_no_pass(planted: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor are those of which the recording does not tell; each is unmeasured by name."""
    monkeypatch.setenv("PLANT_ERRORS", planted)
    report = tried("tests.quality.planted_error_faults:PROGRAM", tmp_path, "error:ENOSPC")
    assert report.verdict == "unmeasured", report
    assert "error@1:ENOSPC: the run came to no such call" in report.unmeasured[0].detail


def test_a_kernel_without_notices_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is tried, and nothing passes."""
    monkeypatch.setattr("crashlab.record.strace.notices.platform.machine", lambda: "pdp11")
    report = tried(script("right"), tmp_path, "error:ENOSPC")
    assert report.verdict == "unmeasured", report
    assert report.unmeasured[0].code == "tool-missing"
    assert "pdp11" in report.unmeasured[0].detail
