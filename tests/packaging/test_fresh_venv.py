"""A team installs the wheel into an environment of its own, pastes the first page's code, and runs pytest.

The code is that of README.md: its careful functions, and the same without the ``fsync`` of the file.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from tests.packaging.conftest import ROOT
from tests.packaging.fresh import Fresh

if TYPE_CHECKING:
    from pathlib import Path

README = (ROOT / "README.md").read_text()
CAREFUL = (
    README.split("<!-- run: consistent -->\n```python\n")[1]
    .split("def test_notes")[0]
    .replace("from crashlab import Store, check\n", "")
)
FORGETFUL = re.sub(r"^.*os\.fsync\(draft.*\n", "", CAREFUL, flags=re.MULTILINE)
TEST = README.split("## For teams")[1].split("```python\n")[1].split("```")[0]

MESSAGE = (  # what the message of a violation holds, in this order; which of the failing states comes first is open
    r"VIOLATION lost: .* was acked; load\(\) raised \w+Error.* \[power@\d+-[^\]]+\]",
    r"Store\(save, load\) +CV",
    r"\d+ +call +save\(",
    r"\d+ +create +notes\.tmp +myapp/notes\.py:\d+",
    r"\d+ +write +notes\.tmp +[\d,]+ bytes at 0 ",
    r"\d+ +rename +notes\.tmp -> notes\.json",
    r"\d+ +fsync +\.",
    r"\d+ +ack ",
    r"-{10} power loss -{10}",
    r"on disk +\S",
    r"recovery +load\(\) raised \w+Error",
    r"expected +\{",
    r"possible +.*btrfs",
    r"why +\S",
    r"advice +fsync notes\.tmp between ops 3 and 4",
    r"replay +crashlab replay power@",
    r"look +\.crashlab/",
)
WAYS = {
    "plain": (["-q"], False),
    "with two workers": (["-q", "-n2"], False),
    "without the plugin": (["-q", "-p", "no:crashlab"], False),
    "with Hypothesis": (["-q"], True),
}


@pytest.fixture(scope="module")
def fresh(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Fresh:
    """One environment for all tests of this file."""
    return Fresh(tmp_path_factory.mktemp("fresh"), wheel, extra=["hypothesis"])


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project whose functions forget the ``fsync`` of the file."""
    (tmp_path / "myapp").mkdir()
    (tmp_path / "myapp" / "__init__.py").touch()
    (tmp_path / "myapp" / "notes.py").write_text(FORGETFUL)
    (tmp_path / "test_notes.py").write_text(TEST)
    (tmp_path / "conftest.py").write_text("")  # pytest then finds myapp beside it
    return tmp_path


def mend(project: Path) -> None:
    """Put the ``fsync`` back."""
    (project / "myapp" / "notes.py").write_text(CAREFUL)


def test_the_page_has_the_line_that_is_left_out() -> None:
    """Otherwise the next tests would compare a thing with itself."""
    assert CAREFUL.count("os.fsync") == 2
    assert FORGETFUL.count("os.fsync") == 1
    assert "check(NOTES)" in TEST


def test_nothing_else_is_installed(fresh: Fresh, tmp_path: Path) -> None:
    """The environment has no package of the tests, so the core must do without; Hypothesis is there when asked for."""
    program = (
        "import importlib.util as u; print([n for n in ('crashlab', 'longrun', 'hypothesis', 'jsonschema', 'anthropic',"
        " 'coverage', 'benchmarks', 'tests') if u.find_spec(n)])"
    )
    assert fresh.run(tmp_path, "python", "-c", program).stdout == "['crashlab', 'longrun']\n"
    with_it = fresh.run(tmp_path, "python", "-c", program, extra=True).stdout
    assert with_it == "['crashlab', 'longrun', 'hypothesis']\n"


@pytest.mark.parametrize("way", WAYS)
def test_a_missing_fsync_is_caught_and_the_mended_code_passes(fresh: Fresh, project: Path, way: str) -> None:
    """The message has every part, in order; with the line back the same test passes."""
    arguments, extra = WAYS[way]
    red = fresh.run(project, "python", "-m", "pytest", *arguments, extra=extra)
    assert red.returncode == 1, red.stdout + red.stderr
    found: list[str] = []
    rest = red.stdout
    for part in MESSAGE:
        match = re.search(part, rest)
        assert match, f"{part!r} is missing behind {found[-1:]} in\n{red.stdout}"
        found.append(match[0])
        rest = rest[match.end() :]
    assert " <-- " in red.stdout
    assert "Traceback" not in red.stdout
    assert ("= crashlab =" in red.stdout) == (way != "without the plugin"), "the summary has a section of the lab"
    mend(project)
    green = fresh.run(project, "python", "-m", "pytest", *arguments, extra=extra)
    assert green.returncode == 0, green.stdout + green.stderr
    assert "1 passed" in green.stdout


def test_the_commands_work_from_the_wheel(fresh: Fresh, project: Path) -> None:
    """Check, replay, show and draw: the page needs the templates, the JSON the model, the agents are there."""
    checked = fresh.run(project, "crashlab", "check", "test_notes:NOTES", "--json", "--quiet")
    assert checked.returncode == 1, checked.stderr
    (report,) = json.loads(checked.stdout)["reports"]
    state = report["findings"][0]["id"]
    assert fresh.run(project, "crashlab", "replay", state, "--quiet").returncode == 1
    assert f"[{state}]" in fresh.run(project, "crashlab", "show", state).stdout
    page = fresh.run(project, "crashlab", "report", "--format", "html", "--output", "page.html")
    assert page.returncode == 0, page.stderr
    assert state in (project / "page.html").read_text()
    mend(project)
    assert fresh.run(project, "crashlab", "check", "test_notes:NOTES", "--quiet").returncode == 0
    assert fresh.run(project, "crashlab", "doctor").returncode in {0, 2}
    assert fresh.run(project, "longrun", "--help").returncode == 0
