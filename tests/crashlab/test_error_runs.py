"""Live runs under errors: in their order, and where mapped files are in play held long enough to be believed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from crashlab.error_points import ErrorPoint
from crashlab.error_runs import live_runs
from crashlab.observation import RawRecording
from crashlab.record.strace.mapped import HOLD_US
from crashlab.reference import LONGEST_HOLD_US
from crashlab.tree import Tree

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

POINTS = [ErrorPoint(n=n, variant="EIO", kind="write") for n in (1, 2, 3)]


class Slow:
    """A host on a busy machine: what it records is too late until each call is held for ``enough_us``."""

    def __init__(self, enough_us: int, traced: dict[str, int] | None) -> None:
        self.enough_us, self.traced = enough_us, traced
        self.held: list[tuple[int, int]] = []

    def record(self, *, error: dict[str, Any], expected: Any, timeout_s: float) -> RawRecording:
        assert (expected, timeout_s) == ("end", 7.0)
        hold_us = (self.traced or {}).get("hold_us", 0)
        self.held.append((error["at"], hold_us))
        late = hold_us < self.enough_us
        return RawRecording(
            root="/r", base=Tree.empty(), ops=(), last=Tree.empty(), how="returned", late=late and hold_us > 0,
            mapped=late and not hold_us, value={"end": error["at"]},
        )  # fmt: skip

    def record_many(self, ways: Iterable[Any], *, timeout_s: float) -> Iterator[RawRecording]:
        for way in ways:
            yield self.record(**way, timeout_s=timeout_s)


def runs(host: Slow) -> list[tuple[int, RawRecording]]:
    found: Any = host
    return [(point.n, live) for point, live in live_runs(found, POINTS, expected="end", timeout_s=7.0)]


@pytest.mark.parametrize("first", [{}, {"hold_us": HOLD_US}])
def test_a_run_that_was_looked_at_too_late_is_held_longer(first: dict[str, int]) -> None:
    """Twice as long each time, and so are the runs after it: the machine is no faster for them."""
    host = Slow(3 * HOLD_US, dict(first))
    assert [(n, (live.value or {})["end"], live.late) for n, live in runs(host)] == [(n, n, False) for n in (1, 2, 3)]
    assert host.traced == {"hold_us": 4 * HOLD_US}
    assert [each for each in host.held if each[1] == 4 * HOLD_US] == [(n, 4 * HOLD_US) for n in (1, 2, 3)]


def test_a_machine_that_is_never_in_time_is_not_waited_for_for_ever() -> None:
    """What it recorded is late, and says so."""
    host = Slow(LONGEST_HOLD_US + 1, {"hold_us": LONGEST_HOLD_US // 2})
    assert all(live.late for _, live in runs(host))
    assert len(host.held) == len(POINTS) + 1


def test_code_that_is_watched_from_inside_is_run_once() -> None:
    """Nothing is held there."""
    host = Slow(0, None)
    assert [n for n, _ in runs(host)] == [n for n, _ in host.held] == [1, 2, 3]
