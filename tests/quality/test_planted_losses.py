"""Every missing barrier is found, soon; writers that miss none stay clean on the weakest file system.

That a violation comes soon is shown without the lab: the states in their order, each written to a
directory, met by a bare ``load`` and judged by a few lines of this module.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from crashlab import Budget, Log, Store, directory, explore
from crashlab.crash.losses import Losses
from crashlab.crash.profiles import parse_profiles
from crashlab.report.folder import RunFolder
from tests.quality import lossy_stores

if TYPE_CHECKING:
    from pathlib import Path

    from crashlab.crash.states import CrashState

EVERY = "ext4,xfs,btrfs,posix"
SOON = 100
FEW = Budget(real_kills=0, violations=2)
"""A violation is looked for, not all of them."""


def breaks(subject: Store | Log, state: CrashState, place: Path) -> bool:
    """Whether a bare ``load`` finds something else than what was acked, or that and what was in flight."""
    directory.write(state.tree, place)
    try:
        found = subject.load(place / "dir")
    except (ValueError, OSError):
        return True
    acked, values = len(state.acks), list(subject.values or ())
    if isinstance(subject, Store):
        return found not in [values[acked - 1] if acked else None, *values[acked : acked + 1]]
    events = [event for batch in values[: acked + 1] for event in batch]
    return found != events[: len(found)] or len(found) < sum(map(len, values[:acked]))


def first_broken(subject: Store | Log, out: Path, limit: int) -> int | None:
    """How many distinct states come before the first that breaks, of those of the last run; None for none of them."""
    losses = Losses(RunFolder.open(None, out).trace(), parse_profiles(EVERY))
    for number, state in enumerate(losses.states()):
        if number == limit:
            break
        place = out / f"state{number}"
        place.mkdir()
        if breaks(subject, state, place):
            return number
    return None


@pytest.mark.parametrize("name", lossy_stores.FOUND)
def test_a_missing_barrier_is_found_soon(name: str, tmp_path: Path) -> None:
    """A violation of the stated kind, the first within a hundred distinct states; what kills spare is clean without."""
    subject, kinds = lossy_stores.FOUND[name]
    report = explore(subject, profile=EVERY, out=tmp_path, budget=FEW)
    kill, power = report.faults
    assert report.verdict == "violation", str(report)
    assert power.violation > 0
    assert kinds <= {finding.kind for finding in report.findings if finding.fault == "power"}, str(report)
    assert (kill.violation > 0) == (name in lossy_stores.KILLED), str(report)
    assert first_broken(subject, tmp_path, SOON) is not None


@pytest.mark.parametrize("name", lossy_stores.CLEAN)
def test_a_correct_writer_is_clean(name: str, tmp_path: Path) -> None:
    """No violation under any profile, with the lab and without it, and no control of the lab out of order."""
    subject: Any = lossy_stores.CLEAN[name]
    report = explore(subject, faults="power", profile=EVERY, out=tmp_path)
    assert report.verdict == "consistent", str(report)
    [power] = report.faults
    assert power.judged == power.distinct == power.consistent > 5
    assert power.skipped == 0
    assert all(control.passed for control in report.controls)
    assert first_broken(subject, tmp_path, 10 * SOON) is None
