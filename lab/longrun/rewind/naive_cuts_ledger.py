"""The one fault: a rewind cuts the ledger back to where it stood at the target.

A mail cannot be unsent. The new line finds no record of the replies of turn 5 and sends them once more.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

from longrun.ledger import LEDGER_NAME
from longrun.rewind import correct, timelines
from longrun.rewind.shared_ledger import open_shared
from longrun.rewind.subjects import describe

if TYPE_CHECKING:
    from pathlib import Path

    from longrun.harness import Harness
    from longrun.ledger import Acts
    from longrun.protocol import Checkpoint
    from longrun.rewind.timelines import Goal


def rewind(harness: Harness, directory: Path, goal: Goal) -> Checkpoint:
    """Add the copy, and take back what was recorded since."""

    def cut_back(there: Path, head: Checkpoint | None) -> Acts:
        assert head is not None
        target = timelines.find(there, head, goal)
        path = there / LEDGER_NAME
        kept = path.read_bytes().splitlines(keepends=True)[: target.ledger_seen]
        os.truncate(path, sum(map(len, kept)))
        return open_shared(there, target)

    return timelines.rewind(replace(harness, ledger=cut_back), directory, goal)


WAYS = replace(correct.WAYS, rewind=rewind)

subject = describe(WAYS, name="rewind/naive_cuts_ledger")
