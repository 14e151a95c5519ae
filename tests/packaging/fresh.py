"""A fresh environment without a network: our wheel, what it asks for, and pytest; nothing else of this one."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import venv
from importlib.metadata import PackageNotFoundError, distribution
from typing import TYPE_CHECKING

from packaging.requirements import Requirement

if TYPE_CHECKING:
    from pathlib import Path


def needed(names: list[str]) -> set[str]:
    """These distributions and all that they ask for on this machine, without extras."""
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        name = re.sub(r"[-_.]+", "-", waiting.pop()).lower()
        if name in found:
            continue
        found.add(name)
        requirements = [Requirement(text) for text in distribution(name).requires or []]
        waiting += [each.name for each in requirements if each.marker is None or each.marker.evaluate({"extra": ""})]
    return found


def copy_distributions(names: set[str], into: Path) -> None:
    """Copy installed distributions, with what says that they are installed: their entry points count too."""
    for name in names:
        installed = distribution(name)
        for file in installed.files or []:
            if file.parts[0] != ".." and "__pycache__" not in file.parts:
                target = into.joinpath(*file.parts)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(str(installed.locate_file(file)), target)


class Fresh:
    """An environment in ``folder`` with this wheel and pytest; the distributions ``extra`` lie apart."""

    def __init__(self, folder: Path, wheel: Path, *, extra: list[str]) -> None:
        venv.create(folder / "venv", symlinks=True)
        self.bin = folder / "venv" / "bin"
        self.python = self.bin / "python"
        self.extra = folder / "extra"
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        site = folder / "venv" / "lib" / version / "site-packages"
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "--python", str(self.python)]
        subprocess.run([*pip, "install", "--no-index", "--no-deps", str(wheel)], check=True, timeout=600)
        core = [Requirement(text).name for text in _core(site)]
        copy_distributions(needed([*core, "pytest", "pytest-xdist"]), site)
        copy_distributions(needed(extra), self.extra)

    def run(self, folder: Path, *command: str, extra: bool = False) -> subprocess.CompletedProcess[str]:
        """Run one of its programs in ``folder``, with no variables of this process but where temporary files go."""
        environment = {
            "PATH": f"{self.bin}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
            "TMPDIR": os.environ.get("TMPDIR", "/tmp"),
            "HOME": str(folder),
            "COLUMNS": "200",
            "NO_COLOR": "1",
            "CRASHLAB_BUDGET": "brief",  # what is tested here is the installation
            **({"PYTHONPATH": str(self.extra)} if extra else {}),
        }
        return subprocess.run(
            [str(self.bin / command[0]), *command[1:]],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=900,
        )


def _core(site: Path) -> list[str]:
    """What the installed wheel asks for without extras."""
    (metadata,) = site.glob("crashlab-*.dist-info/METADATA")
    lines = re.findall(r"^Requires-Dist: (.*)$", metadata.read_text(), re.MULTILINE)
    return [line for line in lines if "extra ==" not in line]


def available(names: list[str]) -> bool:
    """Whether these distributions are installed here."""
    try:
        needed(names)
    except PackageNotFoundError:
        return False
    return True
