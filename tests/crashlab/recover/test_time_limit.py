"""When a time limit is over: what the machine held up is no hang, and what hangs is ended all the same."""

from __future__ import annotations

import ctypes
import os
import platform
import signal
import threading
import time
from typing import Any

import pytest

from crashlab import Subject
from crashlab.recover import sweep, travel
from crashlab.recover.host import Host
from crashlab.recover.time_limit import SPARED_S, TimeLimit

CLONE_VFORK, CLONE_X86_64 = 0x4000, 56
LIMIT_S = 0.3


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, as the tests set it."""
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


@pytest.mark.parametrize(
    ("seen", "over"),
    [
        (("S", 0.0, 0.0), True),  # it sleeps, or waits for what never comes
        (("R", 1.0, 0.0), True),  # it computes for ever
        (("R", 0.4, 0.0), False),  # it wanted to compute, and could not
        (("D", 0.0, 0.0), False),  # the disk is slow
        (("S", 0.0, 0.5), False),  # the lab itself could not run meanwhile
        (("", 0.0, 0.0), False),  # it has ended already
    ],
)
def test_what_the_machine_held_up_gets_its_time_again(
    clock: list[float], monkeypatch: pytest.MonkeyPatch, seen: tuple[str, float, float], over: bool
) -> None:
    """Judged by what it does at the end of its time, how long it has computed, and how late the lab looks."""
    doing, used_s, late_s = seen
    monkeypatch.setattr(sweep, "doing", lambda _: {doing})
    monkeypatch.setattr(sweep, "used_s", lambda _: used_s)
    limit = TimeLimit(1.0, clock[0] + 1.0)
    clock[0] += 1.0 + late_s
    assert limit.is_over([1] if doing else []) is over
    assert limit.deadline == (101.0 if over else 102.0 + late_s)


@pytest.mark.parametrize(("limit_s", "times"), [(0.3, 100), (10.0, 3), (100.0, 3)])
def test_nothing_is_held_up_for_ever(
    clock: list[float], monkeypatch: pytest.MonkeyPatch, limit_s: float, times: int
) -> None:
    """Half a minute in all, or three times its limit."""
    monkeypatch.setattr(sweep, "doing", lambda _: {"D"})
    limit = TimeLimit(limit_s, clock[0] + limit_s)
    given = 0
    clock[0] = limit.deadline
    while not limit.is_over([1]):
        clock[0] = limit.deadline
        given += 1
    assert abs(given - times) <= 1
    assert given * limit_s <= max(SPARED_S, 3 * limit_s) + limit_s


def how_it_ends(run: Any) -> str:
    """How a run of it without a crash ends under a short limit."""
    with Host(travel.pack(Subject(run))) as host:
        return host.record(timeout_s=LIMIT_S).how


def stands_in_the_kernel(_lab: Any) -> str:
    """As in an fsync of a busy disk: the caller of vfork is listed as one that waits for a disk."""
    if not ctypes.CDLL(None).syscall(CLONE_X86_64, CLONE_VFORK | signal.SIGCHLD, 0, 0, 0, 0):
        time.sleep(3 * LIMIT_S)
        os._exit(0)
    os.wait()
    return "done"


def computes_for_ever(_lab: Any) -> None:
    """It never ends, and computes all the time."""
    while True:
        os.getppid()


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the number of clone is known for x86-64 only")
def test_a_slow_disk_is_no_hang() -> None:
    """It ends as it would with more time."""
    assert how_it_ends(stands_in_the_kernel) == "returned"


@pytest.mark.parametrize("run", [computes_for_ever, lambda _lab: threading.Event().wait()])
def test_one_that_hangs_is_ended(run: Any) -> None:
    """Whether it computes or waits."""
    assert how_it_ends(run) == "hang"
