"""What a reader of a page has: ``crashlab`` and ``pytest`` as commands, and a shell."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import crashlab
from tests.crashlab.pytest_projects import plugin_folder


def as_installed(folder: Path) -> dict[str, str]:
    """Variables under which the commands are those that are tested, with the plugin, as if installed."""
    for name, arguments in {"crashlab": "-m crashlab", "pytest": "-m pytest -p no:cacheprovider"}.items():
        (folder / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {arguments} "$@"\n')
        (folder / name).chmod(0o755)
    lab = Path(crashlab.__file__).parents[1]
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("CRASHLAB_", "PYTEST_"))}
    return clean | {
        "PATH": f"{folder}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
        "PYTHONPATH": f"{lab}{os.pathsep}{plugin_folder(folder)}",
        "CRASHLAB_BUDGET": "brief",
        "COLUMNS": "200",
        "NO_COLOR": "1",
    }


def shell(text: str, folder: Path, variables: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """What comes of a block that a reader pastes into a shell, which ends at the first failure."""
    return subprocess.run(
        ["bash", "-e", "-c", text], cwd=folder, env=variables, capture_output=True, text=True, check=False, timeout=900
    )
