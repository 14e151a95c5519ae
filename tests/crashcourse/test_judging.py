"""From reports to outcomes: what makes a whole case unmeasured, whatever its states say."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from crashcourse.judging import outcomes
from crashlab.report.model import UnmeasuredReason

COUNT = SimpleNamespace(fault="kill", consistent=14, violation=0, refused=0, unmeasured=0, seconds=0.1)


def report(*reasons: UnmeasuredReason) -> Any:
    return SimpleNamespace(findings=[], unmeasured=list(reasons), faults=[COUNT])


@pytest.mark.parametrize("code", ["real-kill-disagrees", "outside-write", "runs-differ", "time-limit"])
def test_a_reason_against_a_pass_is_no_pass(code: str) -> None:
    """A live SIGKILL that left another directory than any computed one, first of all; without it all is well."""
    (clean,) = outcomes(report(), {"kill": "kill"})
    assert clean.verdicts == {"consistent": 14}
    (doubted,) = outcomes(report(UnmeasuredReason(code=code, detail="so it was")), {"kill": "kill"})
    assert doubted.verdicts["unmeasured"] == 1
    assert doubted.message == f"{code}: so it was"
