"""Case 10, Hypothesis: it looks for values, and for crashes between them, that nobody thought of."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from crashlab import Violation, check
from tests.use_cases import files
from tests.use_cases.cases import DEFAULTS
from tests.use_cases.test_checkpoints import store

if TYPE_CHECKING:
    from pathlib import Path

    from crashlab import Store

strategies = pytest.importorskip(
    "crashlab.strategies", reason="crashlab.strategies is not part of this version", exc_type=ImportError
)
FEW = settings(
    max_examples=4,
    deadline=None,
    derandomize=True,
    database=None,
    report_multiple_bugs=False,  # several kinds would come as a group
    suppress_health_check=list(HealthCheck),
    phases=[Phase.generate, Phase.shrink],
)


def look(subject: Store, out: Path) -> None:
    """What a team writes: the test, called at once."""

    @FEW
    @given(values=strategies.histories(strategies.json_values(), crashes="kill", max_size=3))
    def histories(values: Any) -> None:
        check(replace(subject, values=values), **{**DEFAULTS, "out": out, "faults": "kill"})

    histories()


def test_histories_of_a_careful_store_pass(tmp_path: Path) -> None:
    """Whatever is saved, and wherever it crashes on the way."""
    look(store(files.put), tmp_path)


def test_histories_of_a_store_that_overwrites_are_found(tmp_path: Path) -> None:
    """The failing example is small, and names its crash state."""
    with pytest.raises(Violation) as caught:
        look(store(files.put_in_place), tmp_path)
    assert caught.value.kind in {"lost", "stuck"}
    assert re.search(r"\[kill@\d+[^\]]*\]", str(caught.value))


def test_a_path_with_a_crash_is_a_list_that_one_can_write(tmp_path: Path) -> None:
    """A marker between values: save, lose the power, recover, save on from there."""
    crash = strategies.Crash("kill", 0)
    passing = replace(store(files.put), values=[{"page": 1}, crash, {"page": 2}])
    assert check(passing, **{**DEFAULTS, "out": tmp_path}).verdict == "consistent"
    failing = replace(store(files.put_unsynced), values=[{"page": 1}, strategies.Crash("power", 0)])
    with pytest.raises(Violation) as caught:
        check(failing, **{**DEFAULTS, "out": tmp_path})
    assert "crash(" in str(caught.value)
