"""Tests that change the directory: what belongs to the project stays where pytest was started."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.crashlab.pytest_projects import STORES, run_pytest, section

if TYPE_CHECKING:
    from pathlib import Path

MOVED = (
    STORES
    + """
def test_moved(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    report = check(Store(save_in_place, load, values=VALUES), budget=BRIEF)
    assert [each.fault for each in report.faults] == ["kill"]
    assert list(tmp_path.iterdir()) == []

def test_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    check(Store(save, load, values=VALUES[:1]), budget=BRIEF, out="mine")
    assert len(list((tmp_path / "mine" / "runs").iterdir())) == 1
"""
)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project whose file asks for kills alone, with a test that goes elsewhere before it checks."""
    (tmp_path / "crashlab.toml").write_text('[defaults]\nfaults = "kill"\n')
    (tmp_path / "test_moved.py").write_text(MOVED)
    return tmp_path


def test_a_test_that_goes_elsewhere_has_the_project_still(project: Path) -> None:
    """Its file, its accepted findings and its runs; a second run meets what the first one accepted."""
    first = run_pytest(project, "--crashlab-accept", "known since May", "--basetemp", "basetemp")
    assert first.returncode == 0, first.stdout
    assert (project / "crashlab-baseline.toml").read_text().count('at = "test_moved.py:save_in_place"') == 2
    second = run_pytest(project, "-n1", "--basetemp", "basetemp")
    assert second.returncode == 0, second.stdout
    (line,) = (each for each in section(second.stdout, "crashlab") if "2 accepted" in each)
    assert (project / line.rpartition(", ")[2] / "report.json").is_file()


def test_without_a_file_of_the_project_the_runs_stay_with_it(project: Path) -> None:
    """Where the command line says, if it does; the script that replays one goes back to where pytest was started."""
    (project / "crashlab.toml").unlink()
    arguments = ("--crashlab-faults=kill", "--crashlab-accept=known", "--crashlab-out=kept", "--basetemp=basetemp")
    done = run_pytest(project, *arguments, "-k", "test_moved")
    assert done.returncode == 0, done.stdout
    (run,) = (project / "kept" / "runs").iterdir()
    assert f"cd -- {project} " in next(run.glob("*/run.sh")).read_text()
