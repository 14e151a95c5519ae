"""The wheel and the source archive, built once for all tests of this folder, without a network."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def build(source: Path, into: Path, kind: str) -> Path:
    """What hatchling makes of ``source``: ``wheel`` or ``sdist``. Nothing is written beside the sources."""
    command = [sys.executable, "-m", "hatchling", "build", "--target", kind, "--directory", str(into)]
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        command, cwd=source, env=environment, capture_output=True, text=True, check=False, timeout=600
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (made,) = into.glob("*.whl" if kind == "wheel" else "*.tar.gz")
    return made


@pytest.fixture(scope="session")
def _hatchling() -> None:
    if importlib.util.find_spec("hatchling") is None:
        pytest.skip("hatchling is not here: pip install hatchling")


@pytest.fixture(scope="session")
def wheel(_hatchling: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this source tree."""
    return build(ROOT, tmp_path_factory.mktemp("wheel"), "wheel")


@pytest.fixture(scope="session")
def sdist(_hatchling: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source archive of this source tree."""
    return build(ROOT, tmp_path_factory.mktemp("sdist"), "sdist")
