"""What is shown is small: values that Hypothesis drew shrink to the least that fails, and so does the state."""

from __future__ import annotations

import json
import os
import tempfile
from typing import TYPE_CHECKING, Any

from hypothesis import HealthCheck, Phase, find, settings
from hypothesis import strategies as st

from crashlab import Store, explore

if TYPE_CHECKING:
    from pathlib import Path

JSON = st.dictionaries(st.sampled_from(["a", "b"]), st.integers(0, 9) | st.text("xyz", max_size=3), max_size=2)


def save_in_place(directory: Path, value: Any) -> None:
    """The fault: the old value is gone before the new one is there."""
    (directory / "value.json").write_text(json.dumps(value))


def save_without_fsync(directory: Path, value: Any) -> None:
    """The fault: the name may be there before the bytes."""
    (directory / "value.tmp").write_text(json.dumps(value))
    os.replace(directory / "value.tmp", directory / "value.json")


def load(directory: Path) -> Any:
    path = directory / "value.json"
    return json.loads(path.read_text()) if path.exists() else None


def fails(save: Any, values: list[Any], faults: str) -> Any:
    with tempfile.TemporaryDirectory() as out:
        report = explore(Store(save, load, values=values), faults=faults, budget="brief", jobs=1, out=out)
    return report.findings[0] if report.verdict == "violation" else None


def test_values_shrink_to_the_shortest_history_that_fails() -> None:
    """One save of nothing: the file is there and empty before it holds anything."""
    quiet = settings(
        max_examples=40,
        deadline=None,
        database=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )
    histories = st.lists(JSON, max_size=4)
    least = find(histories, lambda values: fails(save_in_place, values, "kill") is not None, settings=quiet)
    assert least == [{}]


def test_the_state_is_the_one_with_the_fewest_losses() -> None:
    """Of the power losses that fail the one is shown that names the fewest ops, at the earliest moment."""
    finding = fails(save_without_fsync, [{"n": 1}, {"n": 2, "text": "x" * 9_000}, {"n": 3}], "power")
    assert [op.op for op in finding.ops] == ["call", "create", "write", "rename", "ack"]
    assert finding.id in ("power@5-3", "power@5-2..", "power@5-4"), finding
