"""Every descendant is found, named and ended; what ends by itself is not counted."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import crashlab
from crashlab.recover import sweep

PROGRAM = """
import os, subprocess, sys
from crashlab.recover import sweep
sweep.become_subreaper()
{body}
"""


def run(body: str) -> list[str]:
    """What a process prints that plays the worker."""
    lab = os.path.dirname(os.path.dirname(crashlab.__file__))
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(body=body)],
        env={**os.environ, "PYTHONPATH": lab},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


CHAIN = """
def chain(depth):
    if depth and os.fork() == 0:
        chain(depth - 1)
        import threading; threading.Event().wait()
chain(5)"""
CASES: dict[str, tuple[str, Any]] = {
    "nothing": ("", ()),
    "a zombie": ("if os.fork() == 0: os._exit(0)", ()),
    "a child": ("subprocess.Popen(['sleep', '600'])", ("sleep 600",)),
    "one that ends": ("subprocess.Popen(['sleep', '0.02'])", ()),
    "a daemon": ("subprocess.run(['sh', '-c', 'setsid sleep 600 & setsid sleep 601 &'])", ("sleep 600", "sleep 601")),
    "quotes": ("subprocess.Popen(['sh', '-c', 'sleep 600; true'])", ("sh -c 'sleep 600; true'", "sleep 600")),
    "one that ignores SIGTERM": (
        "subprocess.Popen(['sh', '-c', 'trap \"\" TERM; while :; do sleep 0.3; done'])",
        None,
    ),
    "a chain of forks": (
        CHAIN,
        ("a fork of the subject",) * 5,
    ),
}


@pytest.mark.parametrize("case", sorted(CASES))
def test_sweep(case: str) -> None:
    """The names of those that lived on, and then nobody lives."""
    body, expected = CASES[case]
    lines = run(f"{body}\nprint(sweep.sweep())\nprint(sweep.descendants(os.getpid()), sweep.nothing_lives())")
    assert lines[1] == "[] True"
    if expected is None:
        assert "trap" in lines[0]
    else:
        assert lines[0] == repr(expected)


def test_descendants_are_found_without_zombies() -> None:
    """Children of children are found, and a zombie does not live."""
    body = (
        "zombie = os.fork()\nif zombie == 0: os._exit(0)\n"
        "os.waitid(os.P_PID, zombie, os.WEXITED | os.WNOWAIT)\n"
        "shell = subprocess.Popen(['sh', '-c', 'echo; sleep 600; true'], stdout=subprocess.PIPE)\n"
        "shell.stdout.readline()\nfound = sweep.descendants(os.getpid())\n"
        "print(zombie in found, shell.pid in found)\nsweep.end_all()\nprint(sweep.descendants(os.getpid()))"
    )
    assert run(body) == ["False True", "[]"]


def test_a_frozen_process_is_not_handed_the_lock_that_it_waits_for(tmp_path: Path) -> None:
    """Whoever comes next gets it; thawed, it waits anew and has its turn. An ended process is no error."""
    lock = tmp_path / "lock"
    waiter = "import fcntl, sys; fcntl.flock(open(sys.argv[1], 'ab'), fcntl.LOCK_EX); print('mine')"
    with open(lock, "ab") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        process = subprocess.Popen([sys.executable, "-c", waiter, str(lock)], stdout=subprocess.PIPE, text=True)
        while f" {process.pid} " not in Path("/proc/locks").read_text():
            assert process.poll() is None
        sweep.freeze([process.pid])
    with open(lock, "ab") as next_one:
        fcntl.flock(next_one, fcntl.LOCK_EX | fcntl.LOCK_NB)
    sweep.thaw([process.pid])
    assert process.communicate()[0] == "mine\n"
    sweep.freeze([process.pid])
    sweep.thaw([process.pid])


def test_what_has_ended_is_not_frozen() -> None:
    """An owner that ended as it was to be frozen has ended by itself."""
    with subprocess.Popen(["true"]) as process:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # a zombie, as its nursery may not have reaped it yet
        assert sweep.freeze([process.pid]) == []
