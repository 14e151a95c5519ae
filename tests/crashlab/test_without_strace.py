"""Where strace is missing, too old or forbidden: no verdict, what to install, and nothing left behind."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import crashlab
from crashlab import exits

LAB = Path(crashlab.__file__).parents[1]
ROOT = Path(__file__).parents[2]
VERSION = '[ "$1" = -V ] && echo "strace -- version 6.1" && exit; '
UNFIT = {
    "absent": ("", "strace 5.3 or newer is not installed", "apt install strace"),
    "too old": ("echo 'strace -- version 4.26'", "is version 4.26; 5.3 or newer is needed", "apt install strace"),
    "forbidden": (
        VERSION + "echo 'ptrace: Operation not permitted' >&2; exit 1",
        "cannot watch a process here: ptrace: Operation not permitted",
        "--cap-add=SYS_PTRACE",
    ),
}


class Place:
    """A machine with a strace of ours, or none: ``run`` gives the exit code and what was printed."""

    def __init__(self, folder: Path, script: str) -> None:
        self.folder = folder
        self.programs, self.temporary = folder / "bin", folder / "tmp"
        self.programs.mkdir()
        self.temporary.mkdir()
        (self.programs / "sh").symlink_to("/bin/sh")
        if script:
            (self.programs / "strace").write_text(f"#!/bin/sh\n{script}\n")
            (self.programs / "strace").chmod(0o755)

    def run(self, *arguments: str) -> tuple[int, str]:
        """Python with these arguments; afterwards no process and no temporary folder may be there."""
        clean = {name: value for name, value in os.environ.items() if not name.startswith("CRASHLAB_")}
        path = {"PATH": str(self.programs), "TMPDIR": str(self.temporary), "PYTHONPATH": f"{LAB}{os.pathsep}{ROOT}"}
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=self.folder,
            env={**clean, **path},
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )
        assert os.listdir(self.temporary) == []
        assert not _processes_of(self.temporary)
        return done.returncode, " ".join((done.stdout + done.stderr).split())


def _processes_of(temporary: Path) -> list[str]:
    """Processes whose environment names this folder, which no other test knows."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            named = entry.name.isdigit() and os.fsencode(temporary) in (entry / "environ").read_bytes()
        except (FileNotFoundError, PermissionError, ProcessLookupError):
            continue
        found += [entry.name] if named else []
    return found


@pytest.fixture(params=UNFIT)
def unfit(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Place, str, str]:
    """A place, why strace will not do there, and what helps."""
    script, why, helps = UNFIT[request.param]
    return Place(tmp_path, script), why, helps


def test_a_program_cannot_be_recorded(unfit: tuple[Place, str, str]) -> None:
    """``crashlab run`` ends with 2, and says what to install."""
    place, why, helps = unfit
    code, said = place.run("-m", "crashlab", "run", "echo hi > {dir}/a", "--resume", "true")
    assert code == exits.UNMEASURED, said
    assert "tool-missing" in said
    assert why in said
    assert helps in said
    assert not (place.folder / "a").exists()


def test_check_raises_for_commands(unfit: tuple[Place, str, str]) -> None:
    """In a test of one's own: Unmeasured, never a pass."""
    place, why, helps = unfit
    script = (
        "from crashlab import Commands, Unmeasured, check\n"
        "try: check(Commands('echo hi > {dir}/a', 'true'))\n"
        "except Unmeasured as error: print([each.code for each in error.report.unmeasured], error)\n"
    )
    code, said = place.run("-c", script)
    assert code == 0, said
    assert said.startswith("['tool-missing'] UNMEASURED"), said
    assert why in said
    assert helps in said


def test_a_store_over_a_c_library_is_unmeasured(unfit: tuple[Place, str, str]) -> None:
    """What SQLite writes is noticed by the replay proof; the advice is the tool that would see it."""
    place, _, helps = unfit
    code, said = place.run("-m", "crashlab", "check", "tests.quality.probes:DATABASE", "--faults", "kill")
    assert code == exits.UNMEASURED, said
    assert "unseen-writer" in said
    assert helps in said


def test_a_store_that_needs_no_strace_is_checked_without(unfit: tuple[Place, str, str]) -> None:
    """Its own Python code does all the writing."""
    code, said = unfit[0].run("-m", "crashlab", "check", "tests.quality.probes:RENAME_SYNCED", "--faults", "kill")
    assert code == exits.CONSISTENT, said
