"""``watch``: a saved file is checked once, keys act, and nothing happens by itself."""

from __future__ import annotations

import functools
import os
import pty
import select
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from crashcourse import cli, watching
from crashcourse.catalog import find
from crashcourse.work import Work

if TYPE_CHECKING:
    from pathlib import Path


def followed(file: Path, script: list[object]) -> list[str]:
    """The acts of a script: a text is a key, a function does something to the file while nobody presses one."""
    done: list[str] = []
    rest = iter(script)

    def key(_: float) -> str:
        each = next(rest)
        if callable(each):
            each()
            return ""
        return str(each)

    watching.watch(file, {name: functools.partial(done.append, name) for name in "rhl"}, key)
    return done


def test_a_saved_file_is_checked_once(tmp_path: Path) -> None:
    """At the start, after each save, by whatever way an editor saves; not while the file is away, nor for nothing."""
    file = tmp_path / "exercise.py"
    file.write_text("1")

    def replaced() -> None:
        (tmp_path / "new").write_text("33")
        os.replace(tmp_path / "new", file)

    script = ["", lambda: file.write_text("22"), "", replaced, "", file.unlink, "", "q"]
    assert followed(file, script) == ["r", "r", "r"]


def test_keys_act(tmp_path: Path) -> None:
    """Each its own act; others none; the end of the input leaves."""
    file = tmp_path / "exercise.py"
    file.write_text("1")
    assert followed(file, ["h", "x", "l", "r", "q"]) == ["r", "h", "l", "r"]
    assert followed(file, ["\x04"]) == ["r"]


def test_without_a_terminal_it_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """And names the command that needs none."""
    monkeypatch.chdir(tmp_path)
    Work().start(find("2.2"))
    assert cli.main(["watch", "2.2"]) == 64
    assert "watch needs a terminal for its keys; without one: crashcourse check EXERCISE" in capsys.readouterr().err


@pytest.mark.skipif(sys.platform != "linux", reason="a pseudo terminal behaves as on Linux")
def test_at_a_terminal(tmp_path: Path) -> None:
    """The line of keys first; q leaves, and the terminal is as before."""
    folder = tmp_path / "work" / "unbreakable-save"
    folder.mkdir(parents=True)
    (folder / "exercise.py").write_text("def (")
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "crashcourse", "watch", "2.2"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    said = b""
    while b"next    crashcourse hint" not in said and select.select([ours], [], [], 60)[0]:
        said += os.read(ours, 4096)
    os.write(ours, b"q")
    assert process.wait(60) == 0
    os.close(ours)
    assert said.startswith(b"watching work/unbreakable-save/exercise.py   r run  h hint  l list  q quit")
    assert b"VIOLATION" in said
