"""The one fault: a rewind brings back the tokens of its target with it.

What was spent since is spent. A run that goes back often enough never comes to the end of its budget.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from longrun.rewind import correct, timelines
from longrun.rewind.subjects import describe

if TYPE_CHECKING:
    from longrun.protocol import Checkpoint


def carry(target: Checkpoint, head: Checkpoint) -> Checkpoint:
    """A copy of the target, with the requests of the head."""
    return replace(target, requests_started=head.requests_started, requests_saved=head.requests_saved)


WAYS = replace(correct.WAYS, rewind=partial(timelines.rewind, carry=carry))

subject = describe(WAYS, name="rewind/naive_refunds_tokens")
