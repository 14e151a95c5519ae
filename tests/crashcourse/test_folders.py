"""Temporary folders: gone at the end of the block, and after SIGKILL too."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from crashcourse import folders
from crashcourse.folders import temporary

LIMIT_S = 300.0
HOLDS = """
import os, sys
from crashcourse import folders
folders.guarded = sys.argv[1] == "guarded"
with folders.temporary() as folder:
    os.mkdir(folder + "/closed")
    open(folder + "/closed/file", "w").close()
    os.chmod(folder + "/closed", 0)
    print(folder, flush=True)
    sys.stdin.read()
"""


def killed(how: str, temporary_folder: Path) -> Path:
    """The folder of a process that was ended by SIGKILL while it held one."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDS, how],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "TMPDIR": str(temporary_folder)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    folder = Path(process.stdout.readline().strip())
    assert folder.is_dir()
    process.send_signal(signal.SIGKILL)
    process.communicate()
    return folder


def test_it_is_gone_at_the_end_of_the_block() -> None:
    """With all that is in it, also where an error ends it."""
    with pytest.raises(KeyError), temporary() as folder:  # noqa: PT012 - two lines, and the second is the error
        Path(folder, "file").write_text("1")
        raise KeyError
    assert not Path(folder).exists()
    assert Path(folder).name.startswith(folders.PREFIX)


def test_sigkill_leaves_no_folder(tmp_path: Path) -> None:
    """The shell beside it sees the end of its input."""
    folder = killed("guarded", tmp_path)
    deadline = time.monotonic() + LIMIT_S
    while folder.exists() and time.monotonic() < deadline:
        select.select([], [], [], 0.02)
    assert list(tmp_path.iterdir()) == []


def test_without_the_shell_it_stays(tmp_path: Path) -> None:
    """The sabotage of the above."""
    folder = killed("alone", tmp_path)
    assert folder.exists()
    (folder / "closed").chmod(0o700)
