"""The one fault: a turn is counted once its calls are answered (B), not with the answer that it is (A).

A process killed in between has asked once more, and does not know it. One kill makes the counter smaller
than the transcript; a loop of such kills never comes to a cap on turns.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from longrun.booking import Gain, add
from longrun.inbox import SHORT_BODY_BYTES
from longrun.resume import trusting
from longrun.subjects import describe

if TYPE_CHECKING:
    from longrun.protocol import Checkpoint


def book(state: Checkpoint, gain: Gain, point: str) -> Checkpoint:
    """Everything with the answer, but the turn with the results."""
    match point:
        case "A":
            return add(state, replace(gain, turns=0))
        case "B":
            return add(state, Gain(turns=gain.turns))
    return add(state, gain)


HARNESS = replace(trusting.HARNESS, book=book)

subject = describe(HARNESS, name="resume/naive_late_turn", body_bytes=SHORT_BODY_BYTES)
