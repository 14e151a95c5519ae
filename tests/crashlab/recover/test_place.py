"""A worker's place is its own mount, in its own namespace, and gives no rights that the user has not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import crashlab
from crashlab import directory
from crashlab.recover import place

PIN = """
import os, sys
from crashlab.recover import place
print(repr(place.pin(sys.argv[1])))
open(os.path.join(sys.argv[1], "inside"), "w").close()
print(sorted(os.listdir(sys.argv[1])), oct(os.stat(sys.argv[1]).st_mode & 0o777))
"""
AS_NOBODY = """
import ctypes, os
os.setgroups([]); os.setgid(65534); os.setuid(65534)
ctypes.CDLL(None).prctl(4, 1)  # dumpable again, as a program that this user had started
"""
RIGHTS = """
for line in open("/proc/self/status"):
    if line.startswith("CapEff"): print(int(line.split()[1], 16), os.getuid())
"""


def run(code: str, root: Path, **env: str) -> list[str]:
    """The lines that a fresh interpreter prints."""
    lab = os.path.dirname(os.path.dirname(crashlab.__file__))
    done = subprocess.run(
        [sys.executable, "-c", code, str(root)],
        env={**os.environ, "PYTHONPATH": lab, **env},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_the_mount_is_the_workers_own(tmp_path: Path) -> None:
    """It starts empty and private, and nothing of it is seen from outside."""
    place.make_root(str(tmp_path / "root"))
    lines = run(PIN, tmp_path / "root")
    if lines[0] != "''":
        pytest.skip(f"this system refuses mount namespaces: {lines[0]}")
    assert lines[1] == "['inside'] 0o700"
    assert sorted(os.listdir(tmp_path / "root")) == ["dir", "home", "tmp"]
    assert str(tmp_path) not in Path("/proc/self/mounts").read_text()


def test_another_user_gets_a_place_and_no_rights(tmp_path: Path) -> None:
    """In a user namespace of its own, with its own number, and without capabilities after the mount."""
    if os.geteuid() != 0:
        pytest.skip("only root can play another user")
    root = tmp_path / "root"
    root.mkdir()
    os.chown(root, 65534, 65534)
    for each in (tmp_path, *tmp_path.parents[:3]):
        if each.stat().st_uid == 0 and str(each) != "/tmp" and str(each).startswith("/tmp"):
            each.chmod(0o755)
    lines = run(
        "import json, crashlab.directory\nfrom crashlab.recover import place\n" + AS_NOBODY + PIN + RIGHTS, root
    )
    if lines[0] != "''":
        pytest.skip(f"this system refuses user namespaces: {lines[0]}")
    assert lines[1:] == ["['inside'] 0o700", "0 65534"]


def test_the_switch_refuses(tmp_path: Path) -> None:
    """CRASHLAB_NO_NAMESPACE=1 leaves the root as it is and says so."""
    (tmp_path / "root").mkdir()
    assert run(PIN, tmp_path / "root", CRASHLAB_NO_NAMESPACE="1")[0] == "'CRASHLAB_NO_NAMESPACE=1'"
    assert os.listdir(tmp_path / "root") == ["inside"]


def test_refill_makes_exactly_the_tree(tmp_path: Path) -> None:
    """Whatever lay there before, also without permissions, is gone."""
    (tmp_path / "locked" / "below").mkdir(parents=True)
    (tmp_path / "locked" / "below").chmod(0)
    (tmp_path / "locked").chmod(0)
    place.refill(str(tmp_path), place.base_tree())
    assert directory.read(tmp_path).difference(place.base_tree()) == []
    assert sorted(os.listdir(tmp_path)) == ["dir", "home", "tmp"]
