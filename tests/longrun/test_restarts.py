"""Tests of longrun.capstone.restarts: what a child has done stays done, and only a SIGKILL is started again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from crashlab.lab import Lab
from longrun.capstone.restarts import ChildFailed, until_it_ends

lists_children = pytest.mark.skipif(sys.platform != "linux", reason="children are listed in /proc: Linux only")


@pytest.fixture
def told() -> list[tuple[str, dict[str, Any]]]:
    return []


@pytest.fixture
def lab(tmp_path: Path, told: list[tuple[str, dict[str, Any]]]) -> Lab:
    return Lab(tmp_path, lambda event, **fields: told.append((event.__name__, fields)))


def dies_until(count: int) -> Any:
    """Work that mails each time, and is killed until so many mails are out."""

    def work(lab: Any) -> Any:
        lab.effect("mail", to="ada", n=len(lab.records("mail")))
        lab.save_point("turn1.A")
        lab.ack({"seq": 1})
        if len(lab.records("mail")) <= count:
            os.kill(os.getpid(), signal.SIGKILL)
        lab.unknown("page", ticket="T-1")
        return {"mails": len(lab.records()), "at": str(lab.dir)}

    return work


def test_each_child_meets_what_the_dead_ones_have_done(lab: Lab, told: list[Any], tmp_path: Path) -> None:
    """Three deaths, four mails, one end; all of it was told to the lab, in order."""
    assert until_it_ends(lab, dies_until(3), most=6) == ({"mails": 4, "at": str(tmp_path)}, 3)
    assert [name for name, _ in told] == ["Effect", "SavePoint", "Ack"] * 4 + ["Unknown"]
    assert [each.detail["n"] for each in lab.records("mail")] == [0, 1, 2, 3]


def test_one_that_never_ends_is_given_up(lab: Lab) -> None:
    """After the stated number there is no end."""
    assert until_it_ends(lab, dies_until(99), most=4) == (None, 4)


@pytest.mark.parametrize("deaths", [0, 2])
def test_an_error_of_a_child_is_an_error_here(lab: Lab, deaths: int) -> None:
    """It is not started again, and its words come through."""
    seen = SimpleNamespace(count=0)

    def work(far: Any) -> Any:
        if len(far.records()) < deaths:
            far.effect("mail", key=str(len(far.records())))
            os.kill(os.getpid(), signal.SIGKILL)
        text = f"disk full after {seen.count}"
        raise OSError(text)

    with pytest.raises(ChildFailed, match="OSError: disk full after 0"):
        until_it_ends(lab, work, most=6)
    assert len(lab.records()) == deaths


@pytest.mark.parametrize("how", [lambda: os._exit(3), lambda: os.kill(os.getpid(), signal.SIGTERM)])
def test_another_end_of_a_child_is_an_error_too(lab: Lab, how: Any) -> None:
    """A status, or another signal, is no death that is started again."""
    with pytest.raises(ChildFailed, match="ended with status"):
        until_it_ends(lab, lambda _far: how(), most=6)


@lists_children
def test_no_child_is_left(lab: Lab) -> None:
    """All of them are waited for; whatever this process has started elsewhere is not theirs."""
    before = unwaited()
    until_it_ends(lab, dies_until(2), most=6)
    assert unwaited() <= before


def unwaited() -> set[int]:
    """The children of this process, also the dead ones that nobody has waited for."""
    tasks = Path("/proc/self/task").iterdir()
    return {int(pid) for task in tasks for pid in (task / "children").read_text().split()}


@lists_children
@pytest.mark.parametrize("waited", [True, False])
def test_a_child_that_nobody_waits_for_would_be_seen(waited: bool) -> None:
    """The test above can fail."""
    child = subprocess.Popen(["true"])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    if waited:
        child.wait()
    assert (child.pid in unwaited()) is not waited
    child.wait()
