"""The one fault: a plain start over a stored run deletes it, ledger and all, where it should refuse.

Whoever starts again after a crash, as on the first day, has every customer written to again: what was done is known
to nobody any more. A resume never does this, so the fault hides from who only resumes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from longrun.capstone import correct, subjects
from longrun.ledger import LEDGER_NAME
from longrun.rewind import points

if TYPE_CHECKING:
    from pathlib import Path


def history(directory: Path) -> list[str]:
    """Nothing, since it is cleared away."""
    (directory / LEDGER_NAME).unlink(missing_ok=True)
    for seq in points.numbers(directory):
        points.path_of(directory, seq).unlink()
    return []


HARNESS = replace(correct.HARNESS, history=history)

subject = subjects.started_again(HARNESS, name="capstone/naive_wipes_ledger")
