"""What an answer adds to the counters of a checkpoint, and when it is booked: at once, with the answer itself.

The counters are what a cap on turns or tokens goes by. Whatever is booked later than the answer is saved
is lost with the process in between, each time it dies there.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from longrun.protocol import Checkpoint


@dataclass(frozen=True, slots=True, kw_only=True)
class Gain:
    """What one answer adds: a turn (none where nothing was said), a saved answer, the API's four counters."""

    turns: int = 0
    requests_saved: int = 0
    usage: dict[str, int] = field(default_factory=dict)


NO_GAIN = Gain()


def add(state: Checkpoint, gain: Gain) -> Checkpoint:
    """The checkpoint with all that is gained; ``tokens_used`` is the sum of ``usage``, and never falls."""
    usage = {name: count + gain.usage.get(name, 0) for name, count in state.usage.items()}
    return replace(
        state,
        turns=state.turns + gain.turns,
        requests_saved=state.requests_saved + gain.requests_saved,
        usage=usage,
        tokens_used=sum(usage.values()),
    )


def book(state: Checkpoint, gain: Gain, point: str) -> Checkpoint:
    """What is booked at a save point: everything with the answer (``A`` or ``E``), nothing more once it is acted on."""
    return state if point == "B" else add(state, gain)
