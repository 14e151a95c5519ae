"""``import crashlab``: its public names, and how little it loads."""

from __future__ import annotations

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
