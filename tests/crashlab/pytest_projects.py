"""Projects of the tests: stores to check, and pytest run in a process of its own, with the lab's plugin installed."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import crashlab

ROOT = Path(crashlab.__file__).parents[2]
STORES = """
import json, os
import pytest
from crashlab import Budget, Store, check

BRIEF = Budget(states=500, subset=2, sample=0, real_kills=0)

def load(folder):
    path = folder / "value.json"
    return json.loads(path.read_text()) if path.exists() else None

def save_in_place(folder, value):
    (folder / "value.json").write_text(json.dumps(value))

def save(folder, value):
    with open(folder / "value.tmp", "w") as file:
        file.write(json.dumps(value))
        file.flush()
        os.fsync(file.fileno())
    os.replace(folder / "value.tmp", folder / "value.json")

def save_nothing(folder, value):
    pass

VALUES = [{"n": 1}, {"n": 2}]
"""


def plugin_folder(folder: Path) -> Path:
    """A folder that makes crashlab look installed, with the entry points of the project's own build file."""
    entries = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]["pytest11"]
    info = folder / "installed" / "crashlab-0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: crashlab\nVersion: 0\n")
    lines = [f"{name} = {module}" for name, module in entries.items()]
    (info / "entry_points.txt").write_text("\n".join(["[pytest11]", *lines, ""]))
    return info.parent


def run_pytest(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run pytest in ``folder``, where crashlab is installed."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("CRASHLAB_", "PYTEST_"))}
    installed = folder / "installed"
    if not installed.exists():
        plugin_folder(folder)
    path = os.pathsep.join([str(ROOT / "lab"), str(installed)])
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:cov", "-ra", *arguments],
        cwd=folder,
        env={**clean, "PYTHONPATH": path, "COLUMNS": "200", **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )


def section(text: str, heading: str) -> list[str]:
    """The lines below ``=== heading ===``, without empty ones."""
    below = text.split(f" {heading} =")[1].splitlines()[1:]
    end = next(number for number, line in enumerate(below) if line.startswith("===="))
    return [line for line in below[:end] if line.strip()]
