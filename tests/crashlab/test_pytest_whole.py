"""The pytest plugin with the rest: patches of a test, many checks in one, accepted findings, the first page."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from crashlab.pytest_plugin import NOTE_ON_PATCHES
from tests.crashlab.pytest_projects import ROOT, STORES, run_pytest, section
from tests.crashlab.test_commands import crashlab_command

if TYPE_CHECKING:
    from pathlib import Path

PATCHES = """
import os
import time
from crashlab import context

def test_unused(monkeypatch):
    assert list(context.current.notes()) == []

def test_environment_is_handed_on(monkeypatch):
    monkeypatch.setenv("COLOUR", "green")
    assert list(context.current.notes()) == []

def test_attribute(monkeypatch):
    monkeypatch.setattr(time, "time", lambda: 0)
    assert list(context.current.notes()) == [NOTE]

def test_item(monkeypatch):
    monkeypatch.setitem({}, "a", 1)
    assert list(context.current.notes()) == [NOTE]

def test_by_a_fixture(frozen):
    assert list(context.current.notes()) == [NOTE]

def test_no_patches():
    assert list(context.current.notes()) == []
"""
FROZEN = """
import time
import pytest

@pytest.fixture
def frozen(monkeypatch):
    monkeypatch.setattr(time, "time", lambda: 0)
"""


def test_patches_of_the_test_are_noticed(tmp_path: Path) -> None:
    """Also those of a fixture; variables of the environment are no patch, since they reach the fresh process."""
    (tmp_path / "conftest.py").write_text(FROZEN)
    (tmp_path / "test_patches.py").write_text(f"NOTE = {NOTE_ON_PATCHES!r}\n{PATCHES}")
    done = run_pytest(tmp_path)
    assert done.returncode == 0, done.stdout


def test_checks_of_one_test_that_came_to_the_same_are_one_line(tmp_path: Path) -> None:
    """And a check in a thread belongs to the test that waits for it; a check with a name says it."""
    (tmp_path / "test_many.py").write_text(
        STORES
        + """
from concurrent.futures import ThreadPoolExecutor

@pytest.mark.crashlab(faults="kill", budget=BRIEF)
def test_many():
    store = Store(save, load, values=VALUES[:1])
    check(store)
    with ThreadPoolExecutor(1) as threads:
        threads.submit(check, store).result()
    check(Store(save, load, values=VALUES[:1], name="mine"))
"""
    )
    done = run_pytest(tmp_path)
    assert done.returncode == 0, done.stdout
    first, second = section(done.stdout, "crashlab")
    assert first.startswith("PASS        test_many.py::test_many  2 checks, ")
    assert second.startswith("PASS        test_many.py::test_many  mine: ")


def test_the_example_for_teams_does_what_the_page_says(tmp_path: Path) -> None:
    """Test and crashlab.toml of the first page, as they stand there: pytest, check by name, accepted findings."""
    page = (ROOT / "README.md").read_text().split("\n## For teams\n")[1].split("\n## ")[0]
    test, config = re.findall(r"```(?:python|toml)\n(.*?)```", page, re.DOTALL)
    assert len([line for line in test.splitlines() if line]) <= 10
    (tmp_path / "myapp").mkdir()
    (tmp_path / "myapp" / "notes.py").write_text(STORES.replace("save_in_place(", "save_badly("))
    (tmp_path / "agent.sh").write_text('echo 1 > "$1/answer"\n')
    (tmp_path / "test_notes.py").write_text(test)
    (tmp_path / "crashlab.toml").write_text(config)
    done = run_pytest(tmp_path, "-p", "no:xdist", "--crashlab-faults=error")
    assert done.returncode == 1, done.stdout + done.stderr
    (line,) = section(done.stdout, "crashlab")
    assert line.startswith("VIOLATION   test_notes.py::test_notes  lost ")  # the directory is not synced
    listed = crashlab_command("check", "--list", cwd=tmp_path)
    assert listed.stdout == "notes  test_notes:NOTES\nagent  sh agent.sh {dir}\n"
    accepted = crashlab_command("check", "notes", "--accept", "for now", cwd=tmp_path)
    assert accepted.stdout.startswith("PASS with 1 accepted finding  notes: "), accepted.stdout
    assert (tmp_path / "crashlab-baseline.toml").is_file()


def test_findings_are_accepted_by_two_workers_at_once(tmp_path: Path) -> None:
    """Each writes its own entries; the next run passes, and its lines say that it is no plain pass."""
    text = """
@pytest.mark.crashlab(faults="kill", budget=BRIEF)
@pytest.mark.parametrize("number", [1, 2])
def test_naive(number):
    check(Store(save_in_place, load, values=VALUES))
"""
    (tmp_path / "test_naive.py").write_text(STORES + text)
    accepting = run_pytest(tmp_path, "-n2", "--crashlab-accept=for now")
    assert accepting.returncode == 0, accepting.stdout + accepting.stderr
    done = run_pytest(tmp_path, "-n2")
    assert done.returncode == 0, done.stdout
    lines = section(done.stdout, "crashlab")
    assert len(lines) == 2
    assert all(re.match(r"PASS  .*  \d accepted, ", line) for line in lines)


def test_a_patch_that_breaks_the_lab_is_told(tmp_path: Path) -> None:
    """The lab's own calls in the test process meet it too; who reads the failure should look there first."""
    text = """
def test_patched(monkeypatch):
    monkeypatch.setattr(json, "dumps", str)
    check(Store(save, load, values=VALUES))
"""
    (tmp_path / "test_patched.py").write_text(STORES + text)
    done = run_pytest(tmp_path)
    assert done.returncode == 1, done.stdout
    assert "crashlab.errors.Disturbed: the lab's keeper died" in done.stdout  # a LabError
    assert f"{NOTE_ON_PATCHES} They do reach the lab, and may be why it failed." in done.stdout
