"""The pages are true: their code runs, and what they name exists; what exists, they name."""

from __future__ import annotations

import argparse
import doctest
import importlib
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import crashlab
from crashlab import cli, exits
from longrun.demo import DEMO

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
LAB_README = (ROOT / "lab/README.md").read_text()
PAGES = [page for page in sorted(ROOT.rglob("*.md")) if not set(page.relative_to(ROOT).parts) & {".venv", ".crashlab"}]
RUNNABLE = re.findall(r"<!-- run: (\w+) -->\n```python\n(.*?)```", README, re.DOTALL)


def section(page: str, heading: str) -> str:
    """The text under ``## heading``, up to the next heading of that rank."""
    return page.split(f"\n## {heading}\n")[1].split("\n## ", 1)[0]


def first_cells(text: str) -> list[str]:
    """The first cell of every row of every table in ``text``, without head rows."""
    rows = re.findall(r"^\|(.*?)\|", text, re.MULTILINE)
    return [row.strip() for head, row in zip(["", *rows], rows, strict=False) if not ruled(head) or not ruled(row)]


def ruled(cell: str) -> bool:
    """Whether this is a cell of the line under a table's head."""
    return set(cell.strip()) <= {"-"}


def code(cells: list[str]) -> list[str]:
    """Everything between backticks in these cells."""
    return [text for cell in cells for text in re.findall(r"`([^`]+)`", cell)]


HISTORIES = re.findall(r"<!-- history: violation -->\n```python\n(.*?)```", README, re.DOTALL)


def shown_by(what: str) -> list[str]:
    """The lines of output that the page quotes as shown by ``what``, without the space around them."""
    block = re.search(rf"<!-- shown by: {what} -->\n```text\n(.*?)```", README, re.DOTALL)
    assert block, f"the page quotes nothing that is shown by {what}"
    return [line.strip() for line in block[1].splitlines()]


# --- the code runs -----------------------------------------------------------------------------------


def test_the_first_page_has_code_of_both_outcomes() -> None:
    """One block that must fail and one that must pass: without them the next test would show nothing."""
    assert [outcome for outcome, _ in RUNNABLE] == ["violation", "consistent"]


@pytest.mark.parametrize(("outcome", "text"), RUNNABLE, ids=[outcome for outcome, _ in RUNNABLE])
def test_the_code_of_the_first_page_ends_as_it_says(outcome: str, text: str, tmp_path: Path) -> None:
    """A newcomer who pastes a block into a file and runs pytest sees what the page says."""
    (tmp_path / "test_notes.py").write_text(text)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "test_notes.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=600)
    shown = done.stdout + done.stderr
    if outcome == "consistent":
        assert done.returncode == 0, shown
        assert "1 passed" in shown
        return
    assert done.returncode == 1, shown
    assert "VIOLATION" in shown
    assert [line for line in shown_by("the test above") if line not in shown] == []
    named = re.search(r"`(kill@\d+)` is the name of that crash state", README)
    assert named, "the page names the crash state"
    assert f"[{named[1]}]" in shown


@pytest.mark.parametrize("position", [0, 1], ids=["two power losses", "Hypothesis"])
def test_the_histories_of_the_first_page_break_its_correct_save(position: int, tmp_path: Path) -> None:
    """The save that passes is in a file of its own; the path is shown as the page quotes it, given or found."""
    (tmp_path / "notes.py").write_text(RUNNABLE[1][1])
    (tmp_path / "test_histories.py").write_text(HISTORIES[position])
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "test_histories.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=900)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "VIOLATION" in done.stdout
    if position == 0:
        assert [line for line in shown_by("the history above") if line not in done.stdout] == []
    else:
        assert "values=[{}, Crash(" in done.stdout


def test_the_first_own_test_is_short() -> None:
    """The block for newcomers has fewer than ten lines of code."""
    assert len([line for line in RUNNABLE[0][1].splitlines() if line.strip()]) < 10


# --- what the pages name exists, and the other way round ------------------------------------------------


def test_make_targets_are_those_of_the_page() -> None:
    """The page lists every target of the Makefile but ``help``, and no other."""
    listed = {
        command.split()[1] for command in code(first_cells(section(README, "Commands"))) if command[:5] == "make "
    }
    phony = re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert phony
    assert listed == set(phony[1].split()) - {"help"}


def test_make_help_names_every_target() -> None:
    """Plain ``make`` says what there is."""
    phony = re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert phony
    said = subprocess.run(["make", "-s"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert {line.split()[1] for line in said.splitlines()} == set(phony[1].split()) - {"help"}


def test_commands_are_those_of_the_page() -> None:
    """The page lists every command of ``crashlab``, and no other."""
    actions = [each for each in cli.build_parser()._actions if isinstance(each, argparse._SubParsersAction)]
    listed = {each.split()[1] for each in code(first_cells(section(README, "Commands"))) if each[:9] == "crashlab "}
    assert listed == {name for action in actions for name in action.choices}


def test_options_on_the_page_exist(capsys: pytest.CaptureFixture[str]) -> None:
    """Every option that the page names is an option of some command."""
    known = ""
    for command in ("check", "show", "report", "replay", "demo", "doctor", "init"):
        with pytest.raises(SystemExit):
            cli.main([command, "--help"])
        known += capsys.readouterr().out
    named = re.findall(r"`(?:crashlab \w+ )?(--[a-z-]+)", section(README, "Commands"))
    assert named
    assert [option for option in named if option not in known and option != "--help"] == []


def test_exit_codes_are_those_of_the_page() -> None:
    """The table of exit codes and the one that ``crashlab --help`` prints have the same codes and words."""
    table = section(README, "Commands").split("Exit codes:")[1]
    page = dict(re.findall(r"^\| (\d+) \| ([^:|]+?)(?::.*)? \|$", table, re.MULTILINE))
    printed = dict(re.findall(r"^ +(\d+) +([^:\n]+?)(?::.*)?$", cli.EXIT_CODES, re.MULTILINE))
    assert page == printed
    codes = (exits.CONSISTENT, exits.VIOLATION, exits.UNMEASURED, exits.LAB_FAILED, exits.MISUSE, exits.INTERRUPTED)
    assert list(page) == [str(each) for each in codes]


def test_public_names_are_those_of_the_page() -> None:
    """The page lists every public name, and no other."""
    listed = [name for name in code(first_cells(section(README, "What you can describe"))) if name.isidentifier()]
    assert sorted(listed) == sorted(crashlab.__all__)


@pytest.mark.parametrize("name", crashlab.__all__)
def test_public_names_can_be_imported(name: str) -> None:
    """Every name of ``__all__`` is there, and says what it is."""
    assert getattr(crashlab, name).__doc__


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    """Every relative link leads to a file, and every anchor to a heading of its page."""
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        linked = (page.parent / path).resolve() if path else page
        assert linked.exists(), target
        if anchor:
            headings = re.findall(r"^#+ (.*)$", linked.read_text(), re.MULTILINE)
            assert anchor in {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings}, target


def test_every_dependency_has_a_reason() -> None:
    """``lab/README.md`` names each package that ``pyproject.toml`` asks for."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    groups = [project["dependencies"], *project["optional-dependencies"].values()]
    names = {re.split(r"[<>=\[ ]", each)[0] for group in groups for each in group}
    said = section(LAB_README, "Why each dependency")
    assert {name for name in names if not re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", said)} == set()


def test_every_module_of_the_tool_is_on_the_map() -> None:
    """``lab/README.md`` names each module and folder of crashlab, and none that is not there."""
    here = {f"{path.name}/" if path.is_dir() else path.stem for path in (ROOT / "lab/crashlab").iterdir()}
    here -= {"__init__", "__main__", "__pycache__/", "py"}
    assert set(code(first_cells(section(LAB_README, "How crashlab works")))) == here


def test_the_demo_table_names_the_subjects_of_the_demo() -> None:
    """The quoted table has a row for each subject of the demo; naive ones are found, correct ones pass."""
    rows = [re.split(r"  +", line) for line in shown_by("crashlab demo")[1:]]
    modules = [each.subject.split(":")[0].removeprefix("longrun.").replace(".", "/") for each in DEMO]
    assert [row[0].split(",")[0] for row in rows] == modules
    assert [row[1] for row in rows] == ["VIOLATION" if each.kind else "PASS" for each in DEMO]
    assert [re.sub(r"^\d+ ", "", row[-1]) for row in rows] == [each.kind or "none" for each in DEMO]


@pytest.mark.full
def test_the_demo_prints_the_table(tmp_path: Path) -> None:
    """``crashlab demo`` prints the quoted table, except for times and counts of failing states."""
    command = [sys.executable, "-m", "crashlab", "demo", "--quiet", "--out", str(tmp_path)]
    said = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert said.returncode == exits.CONSISTENT, said.stderr
    # How many states are tried after enough of them failed depends on which answers had come by then.
    printed, quoted = (
        [re.sub(r"[\d.]+ s |(?<=V )\d+", "", line).split() for line in lines]
        for lines in (said.stdout.splitlines(), shown_by("crashlab demo"))
    )
    assert [line for line in quoted if line not in printed] == [], said.stdout + said.stderr


@pytest.mark.full
def test_the_benchmarks_run() -> None:
    """``python -m benchmarks`` comes to its end and prints its figures; how good they are is not tested."""
    command = [sys.executable, "-m", "benchmarks"]
    said = subprocess.run(command, capture_output=True, text=True, check=True, timeout=900).stdout
    assert [line.split("  ")[0] for line in said.splitlines() if line][:4] == [
        "crash states",
        "one fresh interpreter each",
        "computed and hashed",
        "recovered and judged",
    ]
    assert "bare fork and exit" in said


EXAMPLES = sorted(
    path.relative_to(ROOT / "lab").with_suffix("").as_posix().replace("/", ".").removesuffix(".__init__")
    for package in ("crashlab", "crashcourse", "longrun")
    for path in (ROOT / "lab" / package).rglob("*.py")
    if re.search(r"^ *>>> (?!.*doctest: \+SKIP)", path.read_text(), re.MULTILINE)
)


@pytest.mark.parametrize("module", EXAMPLES)
def test_the_examples_in_docstrings_come_out_as_they_say(module: str) -> None:
    """An example that nobody runs is a promise that nobody keeps."""
    result = doctest.testmod(importlib.import_module(module))
    assert (result.failed, result.attempted > 0) == (0, True)
