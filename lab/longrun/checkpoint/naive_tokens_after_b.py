"""The one fault: the tokens of an answer are booked once its calls are answered (B), not with the answer (A).

In between they are in memory only. Each kill there loses the price of one answer, though the answer itself
is kept and gone on with: a cap on tokens is reached later than it should be, or never.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from longrun.booking import Gain, add
from longrun.checkpoint import correct
from longrun.inbox import SHORT_BODY_BYTES
from longrun.subjects import describe

if TYPE_CHECKING:
    from longrun.protocol import Checkpoint


def book(state: Checkpoint, gain: Gain, point: str) -> Checkpoint:
    """Everything with the answer, but the tokens with the results."""
    match point:
        case "A":
            return add(state, replace(gain, usage={}))
        case "B":
            return add(state, Gain(usage=gain.usage))
    return add(state, gain)


HARNESS = replace(correct.HARNESS, book=book)

subject = describe(HARNESS, name="checkpoint/naive_tokens_after_b", body_bytes=SHORT_BODY_BYTES)
