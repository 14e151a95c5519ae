"""The conversion of a run of protocol v1 can be killed, and lose the power, at any step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crashlab import Budget, explore
from tests.quality import old_runs

if TYPE_CHECKING:
    from pathlib import Path

FAST = Budget(real_kills=2)


def test_a_conversion_can_be_interrupted_anywhere(tmp_path: Path) -> None:
    """Kills and power losses: the run comes to the same end, with every act once."""
    report = explore(old_runs.SUBJECT, faults="kill,power", profile="ext4,posix", out=tmp_path, budget=FAST)
    assert report.verdict == "consistent", str(report)
    assert report.trace.effects >= 2
    assert all(count.judged > 50 for count in report.faults)


def test_a_conversion_in_the_wrong_order_is_found(tmp_path: Path) -> None:
    """With the old map removed before its records stand in the new ledger a kill between loses them."""
    report = explore(old_runs.FORGETFUL, faults="kill", out=tmp_path, budget=FAST)
    assert report.verdict == "violation", str(report)
