"""Where the states of one fault come from: all of them as a stream, or one by its id.

:class:`~crashlab.crash.losses.Losses` is the source of power losses, :class:`Kills` that of kills.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from crashlab.crash.ids import state_of
from crashlab.crash.kill import Cut, cut_points, kill_states
from crashlab.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from crashlab import trace as t
    from crashlab.crash.states import CrashState


class Source(Protocol):
    """Where the states of one fault come from."""

    def states(self) -> Iterator[CrashState]:
        """Every state, equal ones included."""

    def count(self, limit: int) -> int:
        """How many states have a digest of their own; no more than ``limit`` are counted."""

    def one(self, state_id: str) -> CrashState:
        """The state of an id. Raises UsageError where the fault does not leave it."""


@dataclass(frozen=True)
class Kills:
    """The kills of one trace, as a source of states."""

    trace: t.Trace
    at: Cut = "page"

    def states(self) -> Iterator[CrashState]:
        """Every state, equal ones included."""
        return kill_states(self.trace, at=self.at)

    def count(self, limit: int) -> int:
        """How many states have a digest of their own, up to ``limit``."""
        digests: set[str] = set()
        for state in self.states():
            digests.add(state.digest)
            if len(digests) >= limit:
                break
        return len(digests)

    def one(self, state_id: str) -> CrashState:
        """The state of an id. Raises UsageError where no kill leaves it."""
        state = state_of(self.trace, state_id)
        if state.cut_bytes is not None and state.cut_bytes not in cut_points(self.trace.op(state.last_op), at=self.at):
            text = f"{state.id}: a kill cuts writes at page ends only; for any byte ask for faults='kill[cut=byte]'"
            raise UsageError(text)
        return state
