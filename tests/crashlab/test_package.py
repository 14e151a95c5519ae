"""``import crashlab``: its public names, and how little it loads."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import crashlab

ROOT = Path(crashlab.__file__).parents[1]


def run(program: str) -> str:
    """What a fresh interpreter prints."""
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r})\n{program}"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_public_names_are_sorted_and_there() -> None:
    """Each can be had, and a misspelt one is an AttributeError."""
    assert list(crashlab.__all__) == sorted(crashlab.__all__)
    for name in crashlab.__all__:
        assert getattr(crashlab, name).__name__ == name
    assert set(crashlab.__all__) <= set(dir(crashlab))
    with pytest.raises(AttributeError, match="chekc"):
        _ = crashlab.chekc


def test_import_loads_no_stage_of_the_lab() -> None:
    """Neither what draws nor what records: this import happens in every process of a subject."""
    program = (
        "import crashlab; from crashlab import Store; print([m for m in sys.modules if 'crashlab' in m or m == 'rich'])"
    )
    assert run(program) == "['crashlab', 'crashlab.errors', 'crashlab.subject']\n"


def test_the_command_line_loads_no_stage_before_it_knows_the_command() -> None:
    """``crashlab --help`` is quick."""
    assert (
        run("import crashlab.cli; print('rich' in sys.modules, 'crashlab.pipeline' in sys.modules)") == "False False\n"
    )


HEAVY = (
    "rich",
    "jinja2",
    "hypothesis",
    "asyncio",
    "subprocess",
    "cloudpickle",
    "sqlite3",
    "socket",
    "crashlab.pipeline",
)


@pytest.mark.parametrize(
    ("program", "allowed"),
    [
        ("import crashlab", set()),
        ("from crashlab import Store, Log, Subject, Commands, Policy, Budget, UsageError, Violation", set()),
        ("from crashlab import Report, Finding", set()),
        ("import pytest\nbefore = set(sys.modules)\nimport crashlab.pytest_plugin", set()),
        ("from crashlab import check", {"crashlab.pipeline", "asyncio", "subprocess", "cloudpickle", "socket"}),
    ],
    ids=["crashlab", "subjects", "results", "plugin", "check"],
)
def test_what_is_imported_is_what_is_needed(program: str, allowed: set[str]) -> None:
    """Nothing that draws, nothing that starts a process, before a check does; the plugin adds nothing of it either."""
    code = f"before = set(sys.modules)\n{program}\nprint(sorted({HEAVY!r} & (set(sys.modules) - before)))"
    loaded = run(code.replace(f"{HEAVY!r}", f"set({HEAVY!r})"))
    assert set(re.findall(r"'([\w.]+)'", loaded)) <= allowed, loaded


def test_a_heavy_import_would_be_seen() -> None:
    """The names are right: drawing does import rich, checking does import the pipeline."""
    names = "('rich', 'crashlab.pipeline')"
    program = f"import crashlab.report.text, crashlab.pipeline; print([name in sys.modules for name in {names}])"
    assert run(program) == "[True, True]\n"
