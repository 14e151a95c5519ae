"""``crashlab init``: what it writes works at once, and it overwrites nothing."""

from __future__ import annotations

import ast
import os
from typing import TYPE_CHECKING

import pytest

from crashlab import exits, starter
from crashlab.errors import UsageError
from crashlab.project import read
from crashlab.starter import TEST_FILE, start
from tests.crashlab.pytest_projects import run_pytest
from tests.crashlab.test_commands import crashlab_command

if TYPE_CHECKING:
    from pathlib import Path

STORE = """
import json

def save_checkpoint(state, path):
    with open(path, "w") as file:
        json.dump(state, file)

def load_checkpoint(path):
    with open(path) as file:
        return json.load(file)

class Keeper:
    def save(self, value):
        with open(self.path, "w") as file:
            json.dump(value, file)
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a package that saves in place."""
    (tmp_path / "myapp").mkdir()
    (tmp_path / "myapp" / "__init__.py").write_text("")
    (tmp_path / "myapp" / "store.py").write_text(STORE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_what_it_writes_finds_the_fault_at_once(project: Path) -> None:
    """The command names what it found; then pytest and check run the same subject without a change of the files."""
    done = crashlab_command("init", cwd=project)
    assert done.returncode == exits.CONSISTENT, done.stderr
    assert "  save  myapp/store.py:4: save_checkpoint(state, path)  open to write, json.dump\n" in done.stdout
    assert "  load  myapp/store.py:8: load_checkpoint(path)  open to read, json.load\n" in done.stdout
    assert f"wrote {TEST_FILE} (1 test) and crashlab.toml" in done.stdout
    text = (project / TEST_FILE).read_text()
    assert 'save=lambda dir, value: myapp.store.save_checkpoint(value, dir / "checkpoint.data"),' in text
    assert "#   myapp/store.py:13: Keeper.save(value)" in text
    checked = crashlab_command("check", "--budget", "brief", "--faults", "kill", cwd=project)
    assert checked.returncode == exits.VIOLATION, checked.stdout + checked.stderr
    assert checked.stdout.startswith("VIOLATION  checkpoint: ")
    tested = run_pytest(project, "--crashlab-budget=brief", "--crashlab-faults=kill", "-p", "no:xdist")
    assert "VIOLATION   test_crashes.py::test_checkpoint" in tested.stdout, tested.stdout


def test_it_lies_with_the_other_tests(project: Path) -> None:
    """And crashlab.toml names it there."""
    (project / "tests").mkdir()
    assert f"\n  python -m pytest tests/{TEST_FILE}\n" in start(project), "pytest alone would not find myapp"
    assert read(project / "crashlab.toml").subjects["checkpoint"].path == "tests.test_crashes:checkpoint"
    assert (project / "tests" / TEST_FILE).is_file()


@pytest.mark.parametrize("name", ["crashlab.toml", TEST_FILE])
def test_nothing_is_overwritten(name: str, project: Path) -> None:
    """Not even a dangling link; and then nothing else is written either."""
    (project / name).symlink_to("nowhere")
    before = sorted(os.listdir(project))
    with pytest.raises(UsageError, match="is there already, and stays as it is"):
        start(project)
    assert sorted(os.listdir(project)) == before
    assert crashlab_command("init", cwd=project).returncode == exits.MISUSE


def test_a_folder_that_is_none_is_misuse(project: Path) -> None:
    """Nothing is made there."""
    with pytest.raises(UsageError, match="is no folder"):
        start(project / "absent")


def test_both_files_are_written_or_none(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A test without its subject would fail, and the next try would find it there already."""
    write = starter._write

    def refused(path: Path, content: str) -> None:
        if path.name == "crashlab.toml":
            text = "no room"
            raise UsageError(text)
        write(path, content)

    monkeypatch.setattr(starter, "_write", refused)
    before = sorted(os.listdir(project))
    with pytest.raises(UsageError, match="no room"):
        start(project)
    assert sorted(os.listdir(project)) == before


def test_an_empty_project_gets_an_example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both files are sound as they are: no test, no subject, and comments that say how."""
    monkeypatch.chdir(tmp_path)
    told = start(tmp_path)
    assert "found 0 functions" in told
    assert dict(read(tmp_path / "crashlab.toml").subjects) == {}
    text = (tmp_path / TEST_FILE).read_text()
    compile(text, TEST_FILE, "exec")
    assert "# checkpoint = Store(" in text


def test_two_pairs_of_one_name_become_two_subjects(project: Path) -> None:
    """From two modules; names that Python or the file itself uses are avoided."""
    (project / "myapp" / "other.py").write_text(STORE)
    (project / "myapp" / "odd.py").write_text(STORE.replace("_checkpoint", "_check"))
    start(project)
    assert list(read(project / "crashlab.toml").subjects) == ["check_store", "checkpoint", "checkpoint2"]
    compile((project / TEST_FILE).read_text(), TEST_FILE, "exec")


def test_no_name_hides_the_module_that_it_calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``save_config`` in config.py, and ``save`` in app.py: the file imports both, and calls them by these names."""
    names = {"config": "_config", "app": "", "other": "_app2", "more": "_config"}
    for module, end in names.items():
        (tmp_path / f"{module}.py").write_text(STORE.replace("_checkpoint", end))
    (tmp_path / "config_store.py").write_text(STORE.replace("_checkpoint", "_x"))
    monkeypatch.chdir(tmp_path)
    start(tmp_path)
    found = set(read(tmp_path / "crashlab.toml").subjects)
    assert found == {"app_store", "config_store2", "config_store3", "x", "app2"}
    written = ast.parse((tmp_path / TEST_FILE).read_text())
    imported = {alias.name for each in ast.walk(written) if isinstance(each, ast.Import) for alias in each.names}
    assert imported == {*names, "config_store"}
    assert not imported & found
    done = crashlab_command("check", "app_store", "--budget", "brief", "--faults", "kill", "--quiet", cwd=tmp_path)
    assert done.returncode == exits.VIOLATION, done.stdout + done.stderr


def test_a_large_project_gets_no_more_than_one_can_read(project: Path) -> None:
    """And is told so; modules that are imported only once the project is installed are told too."""
    (project / "src").mkdir()
    for number in range(50):
        (project / "src" / f"m{number}.py").write_text(STORE)
    told = start(project)
    assert "\n  11 more pairs got no test" in told
    assert "some modules lie in src/ or lib/: install the project first" in told
    assert len(read(project / "crashlab.toml").subjects) == 40


def test_what_must_be_given_by_name_is_left_to_the_reader(project: Path) -> None:
    """A call without it would raise TypeError."""
    text = STORE.replace("(state, path)", "(state, path, *, indent)")
    text = text.replace("load_checkpoint(path)", "load_checkpoint(path, *, strict=True)")
    (project / "myapp" / "store.py").write_text(text)
    start(project)
    assert dict(read(project / "crashlab.toml").subjects) == {}
    assert "#   myapp/store.py:4: save_checkpoint(state, path, indent=)" in (project / TEST_FILE).read_text()


def test_a_folder_and_a_file_are_no_pair(project: Path) -> None:
    """Which file the one writes and the other reads is not known: both are named, no test is made up."""
    text = STORE.replace("save_checkpoint(state, path)", "save_checkpoint(state, folder)")
    (project / "myapp" / "store.py").write_text(text)
    start(project)
    assert dict(read(project / "crashlab.toml").subjects) == {}
    assert "#   myapp/store.py:4: save_checkpoint(state, folder)" in (project / TEST_FILE).read_text()
