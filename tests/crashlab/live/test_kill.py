"""A gate kills for real, at the op that it was told, and never returns."""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING

import pytest

from crashlab.live.kill import KillGate

if TYPE_CHECKING:
    from collections.abc import Callable


def ending(act: Callable[[], object]) -> int:
    """How a process of its own ends that does ``act``: an exit code, or minus a signal."""
    pid = os.fork()
    if pid == 0:
        try:
            act()
        except BaseException:  # noqa: BLE001 - a death must not be an exception
            os._exit(1)
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@pytest.mark.parametrize(
    ("gate", "dies"), [(KillGate(3), [4, 5]), (KillGate(0), [1, 2, 3, 4, 5]), (KillGate(3, 100), [])]
)
def test_before(gate: KillGate, dies: list[int]) -> None:
    """Between two ops: the first op after the chosen one never happens; a cut lets the call begin."""
    deaths = [n for n in range(1, 6) if ending(lambda n=n: gate.before(n)) == -signal.SIGKILL]  # type: ignore[misc]  # mypy infers no lambda with a default
    assert deaths == dies


@pytest.mark.parametrize(
    ("gate", "n", "length", "allowed"),
    [
        (KillGate(3), 3, 5000, None),
        (KillGate(3, 4096), 2, 5000, None),
        (KillGate(3, 4096), 3, 5000, 4096),
        (KillGate(3, 4096), 3, 10, 10),
    ],
)
def test_cut_bytes(gate: KillGate, n: int, length: int, allowed: int | None) -> None:
    """Inside an op: as many bytes as chosen, never more than there are, and only in that op."""
    assert gate.cut_bytes(n, length) == allowed


def test_end() -> None:
    """The last op may be the chosen one; a cut that never came lets the run end."""
    assert ending(KillGate(3).end) == -signal.SIGKILL
    assert ending(KillGate(3, 4096).end) == 0


def test_a_death_runs_nothing() -> None:
    """No handler, no finally, no flush of what was printed."""

    def act() -> None:
        signal.signal(signal.SIGTERM, lambda *_: os._exit(5))
        try:
            sys.stdout.write("never seen")
            KillGate(1).die()
        finally:
            os._exit(6)

    assert ending(act) == -signal.SIGKILL
