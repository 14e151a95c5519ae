"""The sweep and the profiles of ``conftest.py``: a session that leaves something behind is a failed session."""

from __future__ import annotations

import os
import re
import select
import subprocess
import sys
from pathlib import Path

import pytest

CONFTEST, PORTABLE = (Path(__file__).with_name(name).read_text() for name in ("conftest.py", "portable.py"))
PLAIN = """
def test_plain():
    pass

@pytest.mark.full
def test_marked(budget_examples):
    assert budget_examples == 500
"""
LEAVES_A_FOLDER = """
def test_it():
    tempfile.mkdtemp(prefix="crashlab-")
"""
LEAVES_A_DAEMON = """
def test_it():
    reader = int(os.environ["READER"])
    starter = "import subprocess; subprocess.Popen(['cat'], start_new_session=True)"
    subprocess.run([sys.executable, "-c", starter], stdin=reader, check=True)
"""


def session(
    folder: Path, text: str, *, profile: str = "quick", reader: int | None = None
) -> subprocess.CompletedProcess[str]:
    """Run pytest on one file under this repository's conftest."""
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "tests").mkdir()  # conftest.py imports this one
    (folder / "tests" / "portable.py").write_text(PORTABLE)
    (folder / "test_it.py").write_text("import os, subprocess, sys, tempfile\nimport pytest\n" + text)
    (folder / "pytest.ini").write_text("[pytest]\nmarkers = full\npythonpath = .\n")
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider"]
    environment = {**os.environ, "CRASHLAB_TEST_PROFILE": profile, "READER": str(reader)}
    given = () if reader is None else (reader,)
    return subprocess.run(
        command, cwd=folder, env=environment, pass_fds=given, capture_output=True, text=True, check=False, timeout=600
    )


def test_a_clean_session_passes_without_what_is_marked_full(tmp_path: Path) -> None:
    """The quick profile leaves out the tests marked full, and counts them."""
    done = session(tmp_path, PLAIN)
    assert done.returncode == 0, done.stdout
    assert "1 passed, 1 deselected" in done.stdout


def test_the_full_profile_runs_everything_with_more_examples(tmp_path: Path) -> None:
    """The full profile runs the tests marked full, and gives 500 examples."""
    done = session(tmp_path, PLAIN, profile="full")
    assert done.returncode == 0, done.stdout
    assert "2 passed" in done.stdout


def test_an_unknown_profile_is_refused(tmp_path: Path) -> None:
    """A misspelt profile stops the run and names the known ones."""
    done = session(tmp_path, PLAIN, profile="ful")
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "'ful'; known: quick, full" in done.stdout + done.stderr


def test_a_folder_left_behind_fails_the_session(tmp_path: Path) -> None:
    """A folder of the lab that outlives its test is named, and the session fails."""
    done = session(tmp_path, LEAVES_A_FOLDER)
    assert done.returncode == 1, done.stdout
    assert re.search(r"left behind:\s+folder \S+/crashlab-\w+\n", done.stdout), done.stdout


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux shows the environment of other processes")
def test_a_daemon_left_behind_fails_the_session(tmp_path: Path) -> None:
    """A process that left its parents, and every session of them, is still found and named."""
    reader, writer = os.pipe()
    try:
        done = session(tmp_path, LEAVES_A_DAEMON, reader=reader)
        os.close(reader)
        assert done.returncode == 1, done.stdout
        left = re.search(r"left behind:\s+process (\d+): cat\n", done.stdout)
        assert left, done.stdout
        ended = os.pidfd_open(int(left[1]))
    finally:
        os.close(writer)  # the daemon reads its end and goes
    assert select.select([ended], [], [], 10)[0], "the daemon is still there"
    os.close(ended)
