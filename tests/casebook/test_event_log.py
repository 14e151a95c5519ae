"""Cases of the casebook that broke a log, told to the event log of longrun: it stands, and a naive one does not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from longrun.eventlog.design import DESIGN
from tests.casebook.event_log import TRIALS
from tests.casebook.table import read_cases

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("case", TRIALS)
def test_the_event_log_stands_the_case(case: str, tmp_path: Path) -> None:
    """What the case tells of costs nothing, or is refused with nothing changed."""
    TRIALS[case].stands(tmp_path, DESIGN)


@pytest.mark.parametrize("case", TRIALS)
def test_a_naive_log_does_not(case: str, tmp_path: Path) -> None:
    """The same trial fails, so it can, and by what it is about."""
    trial = TRIALS[case]
    with trial.spoiled(), pytest.raises((Exception, pytest.fail.Exception), match=trial.says):
        trial.stands(tmp_path, trial.naive)


def test_every_trial_is_of_a_case() -> None:
    """By its id in the list."""
    assert TRIALS.keys() <= {case.id for case in read_cases()}
