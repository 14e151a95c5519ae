"""What works without Linux: the portable tests are there, and the lab can be imported, and says what it cannot do.

No macOS or Windows was at hand. Here a fresh interpreter is told that it is on one: ``sys.platform`` says so, modules
that are lacking there cannot be imported, and functions are gone. That shows what is reached for at import, not how the
other system behaves.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import crashlab
from tests import portable

ROOT = Path(__file__).parents[1]
LAB = Path(crashlab.__file__).parents[1]
LACKS = {  # modules and functions of the standard library that are not there
    "darwin": (set(), set(portable.ONLY_LINUX_HAS)),
    "win32": (
        {"fcntl", "grp", "pty", "pwd", "resource", "syslog", "termios", "tty"},
        {
            *portable.ONLY_LINUX_HAS,
            "fork",
            "geteuid",
            "getuid",
            "killpg",
            "mkfifo",
            "pread",
            "pwrite",
            "setsid",
        },
    ),
}
PRETEND = """
import sys, json
platform, modules, functions, lab = json.loads(sys.argv[1])
sys.path.insert(0, lab)
import argparse, asyncio, concurrent.futures, ctypes, email, importlib.metadata, logging, multiprocessing, os, selectors
import platform as p, shutil, signal, socket, subprocess, tempfile, threading, tomllib, urllib.request, uuid, zipfile
import sysconfig, cloudpickle, jinja2, rich.console, rich.table, rich.progress, hypothesis.stateful
sysconfig.get_config_vars()
class Lacking:
    def find_spec(self, name, path=None, target=None):
        if name in modules:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Lacking())
for name in modules:
    sys.modules.pop(name, None)
for name in functions:
    if hasattr(os, name):
        delattr(os, name)
sys.platform = platform
"""
EVERY_MODULE = """
import importlib, pkgutil, crashlab
failed = {}
for each in pkgutil.walk_packages(crashlab.__path__, "crashlab."):
    try:
        each.name.endswith("__main__") or importlib.import_module(each.name)
    except ImportError as error:
        failed[each.name] = str(error)
print(json.dumps(failed))
"""
USED_BY_ALL = """
import crashlab, crashlab.cli, crashlab.crash.kill, crashlab.crash.losses, crashlab.report, crashlab.report.html
import crashlab.report.github, crashlab.report.junit, crashlab.report.text, crashlab.report.load, crashlab.pytest_plugin
print(json.dumps([getattr(crashlab, name).__name__ for name in crashlab.__all__]))
"""
CHECK = """
import tempfile
from crashlab import Store, UsageError, explore
try:
    print(json.dumps(explore(Store(print, print), out=tempfile.mkdtemp(), faults="kill").verdict))
except UsageError as error:
    print(json.dumps(str(error)))
"""


def pretending(platform: str, program: str, *, lacking: set[str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run a program in an interpreter that takes itself for one on ``platform``."""
    modules, functions = LACKS[platform]
    told = json.dumps([platform, sorted(modules if lacking is None else lacking), sorted(functions), str(LAB)])
    command = [sys.executable, "-c", PRETEND + program, told]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)


def answer(done: subprocess.CompletedProcess[str]) -> object:
    """What it printed, as data."""
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


# --- the set ----------------------------------------------------------------------------------------------


FOLDERS = [f"tests/crashlab/{name}" for name in ("crash", "report", "disk", "live", "record/strace")]
"""Two of portable tests, and three of others."""


def test_the_portable_set_is_not_empty() -> None:
    """pytest finds hundreds of them by the marker, and none that needs strace or a disk."""
    command = [sys.executable, "-m", "pytest", "--no-cov", "-q", "--collect-only", "-m", "portable", *FOLDERS]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=600).stdout
    found = [line for line in said.splitlines() if "::" in line]
    assert len(found) > 500, said[-2000:]
    assert not [line for line in found if "strace/" in line or "/disk/" in line or "/live/" in line]


@pytest.mark.parametrize("pattern", portable.PATTERNS)
def test_each_pattern_finds_tests(pattern: str) -> None:
    """A pattern without a file was forgotten when the file was renamed."""
    assert [path for path in ROOT.glob(pattern) if path.name.startswith("test_")]


@pytest.mark.full
def test_the_portable_set_passes_where_linux_is_hidden() -> None:
    """All of them, in a process that takes itself for one on macOS."""
    command = [sys.executable, "-m", "pytest", "--no-cov", "-q", "-p", "tests.portable", "-m", "portable"]
    environment = {"PATH": "/usr/bin:/bin", "PRETEND_PLATFORM": "darwin", "PYTHONPATH": f"{LAB}:{ROOT}"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=500)
    assert done.returncode == 0, done.stdout[-5000:]


# --- importing --------------------------------------------------------------------------------------------


@pytest.mark.portable
def test_every_module_can_be_imported_on_macos() -> None:
    """Also those that only work on Linux: they say so when they are used."""
    assert answer(pretending("darwin", EVERY_MODULE)) == {}


@pytest.mark.portable
@pytest.mark.parametrize("platform", sorted(LACKS))
def test_the_public_names_and_the_reports_can_be_imported(platform: str) -> None:
    """A project whose tests import the lab can be collected everywhere; stored reports can be read and drawn."""
    assert answer(pretending(platform, USED_BY_ALL)) == list(crashlab.__all__)


@pytest.mark.portable
@pytest.mark.parametrize("platform", sorted(LACKS))
def test_the_strategies_can_be_imported(platform: str) -> None:
    """So that a property test is collected, too."""
    program = "import crashlab.strategies as s\nprint(json.dumps(sorted(s.__all__)))\n"
    assert "histories" in str(answer(pretending(platform, program)))


def test_windows_is_refused_with_what_to_use_instead() -> None:
    """A check there is misuse, told in one sentence; it is no pass and no traceback."""
    said = answer(pretending("win32", CHECK))
    assert "not on win32; use WSL" in str(said)


def test_the_doctor_can_be_asked_on_windows() -> None:
    """It says what is lacking; it is not what is lacking."""
    program = "import crashlab.doctor\nprint(json.dumps('asked'))\n"
    assert answer(pretending("win32", program)) == "asked"


def test_a_module_that_is_lacking_is_noticed() -> None:
    """Sabotage: a platform without ``fcntl`` that takes itself for macOS; modules that import it are named."""
    failed = answer(pretending("darwin", EVERY_MODULE, lacking={"fcntl"}))
    assert isinstance(failed, dict)
    assert failed["crashlab.disk.kernel"] == "No module named 'fcntl'"
