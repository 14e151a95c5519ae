"""Caps on a run: after so many turns, or so many tokens, it is stopped before it asks once more.

Both go by what the checkpoint holds, so they are the run's and not a process's: a crash neither resets nor evades
them. An answer that was paid for and lost with its process is in no transcript; but the request was counted before it
was sent, and so it can be reckoned with.

The cap on tokens is looked at between requests: the last one may go beyond it. What a lost answer had cost nobody
knows; it is taken to be as much as the latest exchange that was saved, which is a little less than the truth, since
a transcript only grows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from longrun.errors import UsageError

if TYPE_CHECKING:
    from longrun.protocol import Checkpoint

TURN_LIMIT = 50
FIRST_LOST_TOKENS = 100
"""What an answer is taken to have cost that was lost before any was saved: little, since it may never have been asked
for. Assumed. A process that died between the save and the request leaves the same files."""


def spent_tokens(state: Checkpoint) -> int:
    """The tokens of a run, those of lost answers included; the request that comes next is counted already, not sent."""
    lost = max(0, state.requests_started - 1 - state.requests_saved)
    return state.tokens_used + lost * (state.context_tokens or FIRST_LOST_TOKENS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Caps:
    """``turns``: how many answers a run may have; ``tokens``: from how many on it asks for no more, None for any.

    Raises UsageError for a cap below 1.

    >>> Caps(turns=0)
    Traceback (most recent call last):
    ...
    longrun.errors.UsageError: a cap of 0 turns leaves nothing to do: pass 1 or more
    """

    turns: int = TURN_LIMIT
    tokens: int | None = None

    def __post_init__(self) -> None:
        for count, what in ((self.turns, "turns"), (self.tokens, "tokens")):
            if count is not None and count < 1:
                text = f"a cap of {count} {what} leaves nothing to do: pass 1 or more"
                raise UsageError(text)

    def __call__(self, state: Checkpoint, _opened: Checkpoint | None) -> dict[str, str] | None:
        """The end of a run that may not ask again, as the checkpoint holds it; None where it may.

        The second is the checkpoint with which this process went on: a cap must not go by it.
        """
        if state.turns >= self.turns:
            return {"reason": "turn_limit", "text": f"stopped after {state.turns} turns"}
        if self.tokens is not None and (spent := spent_tokens(state)) >= self.tokens:
            return {"reason": "token_limit", "text": f"stopped after {spent} tokens"}
        return None
