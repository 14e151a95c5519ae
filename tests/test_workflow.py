"""The workflow that ``lab/README.md`` gives for GitHub Actions: it is one, and its own commands do what it says.

GitHub runs a ``run`` block by ``bash -e``, and a step without ``if`` only while all steps before it went well.
What sets a machine up (apt, pip, the actions of others) is not run here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from tests.pages import as_installed, shell

yaml = pytest.importorskip("yaml", reason="PyYAML is not here: pip install pyyaml")

PAGE = (Path(__file__).parents[1] / "lab/README.md").read_text()
TEXT = PAGE.split("<!-- file: .github/workflows/crash.yml -->\n```yaml\n")[1].split("```")[0]
WORKFLOW = yaml.safe_load(TEXT)
STEPS: list[dict[str, Any]] = WORKFLOW["jobs"]["crash"]["steps"]
SETS_UP = ("sudo ", "python -m pip ")

CAREFUL = """
import json, os

def save(folder, value):
    draft = folder / "v.draft"
    draft.unlink(missing_ok=True)
    with open(draft, "x") as file:
        json.dump(value, file)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(folder / "v.json")
    directory = os.open(folder, os.O_RDONLY)
    os.fsync(directory)
    os.close(directory)

def load(folder):
    return json.loads((folder / "v.json").read_text())
"""
NAIVE = CAREFUL.replace("    draft.replace(", "    (folder / 'v.json').write_text('')\n    draft.replace(")
TEST = """
from crashlab import Store, check
from app import load, save

STORE = Store(save, load, values=[{"n": 1}, {"n": 2}])

def test_store():
    check(STORE)
"""
TOML = '[subject.store]\nobject = "test_app:STORE"\n'


@dataclass
class Run:
    """How a run of the workflow went: exit codes by step, and the summary of the page."""

    folder: Path
    codes: dict[str, int] = field(default_factory=dict)

    @property
    def summary(self) -> str:
        return (self.folder / "summary.md").read_text()


def wanted(condition: str, folder: Path, *, failed: bool) -> bool:
    """Whether GitHub would run a step with this ``if``; only what the workflow uses is understood."""
    holds = True
    for part in condition.removeprefix("${{").removesuffix("}}").split("&&"):
        part = part.strip()  # noqa: PLW2901 - the same part without its margin
        file = re.fullmatch(r"hashFiles\('([^']+)'\) != ''", part)
        known = {"": not failed, "!cancelled()": True, "failure()": failed}
        holds = holds and ((folder / file[1]).exists() if file else known[part])
    return holds


def follow(folder: Path, variables: dict[str, str], app: str) -> Run:
    """Run the steps that are ours, as GitHub would, in a fresh project."""
    for name, text in {"app.py": app, "test_app.py": TEST, "crashlab.toml": TOML, "conftest.py": ""}.items():
        (folder / name).write_text(text)
    run = Run(folder)
    environment = {**variables, "GITHUB_STEP_SUMMARY": str(folder / "summary.md"), "GITHUB_ACTIONS": "true"}
    for step in STEPS:
        failed = any(run.codes.values())
        command = step.get("run", "")
        if not command or command.startswith(SETS_UP) or not wanted(step.get("if", ""), folder, failed=failed):
            continue
        run.codes[step["name"]] = shell(command, folder, environment).returncode
    return run


@pytest.fixture(scope="session")
def tools(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Variables under which ``crashlab`` and ``pytest`` are those that are tested."""
    return as_installed(tmp_path_factory.mktemp("tools"))


def test_the_workflow_is_one() -> None:
    """It has a trigger, a machine, a limit of time and rights that are as few as can be; each step does one thing."""
    assert WORKFLOW[True] == ["push", "pull_request"]  # YAML 1.1 reads the key ``on`` as true, and GitHub as a word
    assert WORKFLOW["permissions"] == {"contents": "read"}
    job = WORKFLOW["jobs"]["crash"]
    assert (job["runs-on"], job["timeout-minutes"]) == ("ubuntu-latest", 30)
    assert all(("uses" in step) != ("run" in step) for step in STEPS)
    assert all(re.fullmatch(r"actions/[\w-]+@v\d+", step["uses"]) for step in STEPS if "uses" in step)
    assert "secrets" not in TEXT


def test_the_order_is_the_one_that_works() -> None:
    """Sources, Python, strace, the project, the tests; the runs are kept last, and only where something failed."""
    said = [step.get("uses", step.get("run")).split("@")[0].strip() for step in STEPS]
    assert said[:2] == ["actions/checkout", "actions/setup-python"]
    assert "strace" in said[2]
    assert "pip install" in said[3]
    assert said[4].startswith("pytest ")
    last = STEPS[-1]
    assert (last["if"], last["with"]["include-hidden-files"]) == ("failure()", True)
    assert ".crashlab/runs/" in last["with"]["path"].split()


def test_a_project_that_is_right_goes_through(tmp_path: Path, tools: dict[str, str]) -> None:
    """Every step of ours exits with 0, and the page says PASS."""
    run = follow(tmp_path, tools, CAREFUL)
    assert run.codes == dict.fromkeys(
        ("Run the tests", "Check the subjects of crashlab.toml", "Show what was found"), 0
    )
    assert "PASS" in run.summary


def test_a_project_that_is_wrong_shows_and_keeps_what_was_found(tmp_path: Path, tools: dict[str, str]) -> None:
    """Tests and check are red, the page still has the finding, and what is kept is there."""
    run = follow(tmp_path, tools, NAIVE)
    assert run.codes == {"Run the tests": 1, "Check the subjects of crashlab.toml": 1, "Show what was found": 0}
    assert "VIOLATION" in run.summary
    kept = STEPS[-1]["with"]["path"].split()
    assert [path for path in kept if not (tmp_path / path).exists()] == []
    properties = ET.parse(tmp_path / "pytest.xml").getroot().iter("property")  # noqa: S314 - pytest wrote it just now
    assert [each.get("name") for each in properties] == ["crashlab"]


@pytest.mark.parametrize(("condition", "failed", "runs"), [("", True, False), ("failure()", False, False)])
def test_conditions_are_heeded(tmp_path: Path, condition: str, failed: bool, runs: bool) -> None:
    """A step without a condition is left out after a failure, and one for failures without."""
    assert wanted(condition, tmp_path, failed=failed) == runs
    assert not wanted("${{ !cancelled() && hashFiles('none') != '' }}", tmp_path, failed=False)
