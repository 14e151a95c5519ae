"""When "I do not know" is honest after a second crash.

The rule is that of :mod:`crashlab.honesty`: where some other state with the same files has another history.
But of the crashes of recoveries only a few are looked at, so that such a state may exist and not be known
here. An unknown is therefore called needless only where a kill of the recorded run leaves the same files
too, and in all states known to leave them the effect was done equally often. In doubt it is honest: what
this misses at a second crash, the first crash with the same files shows.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from crashlab import trace as t
from crashlab.crash.states import prefixes_of
from crashlab.honesty import Honesty, evidence_of, matches

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from crashlab.crash.losses import Losses
    from crashlab.crash.nested import Recovery
    from crashlab.crash.states import CrashState

_PROMISES = (t.Ack, t.SavePoint, t.Effect)


class NestedHonesty(Honesty):
    """Knows of the kills of the recorded run and of those of the recoveries that it was told of."""

    def __init__(self, trace: t.Trace, states: Iterable[CrashState], losses: Losses | None = None) -> None:
        known = list(states)
        super().__init__(trace, known, losses)
        self._of_first = losses
        self._first: set[str] = set()
        self._histories: dict[str, list[tuple[t.Effect, ...]]] = defaultdict(list)
        for state in known:
            for evidence in _evidence(state):
                self._first.add(evidence)
                self._histories[evidence].append(state.effects)

    def know(self, recovery: Recovery) -> None:
        """Take the kills of a recovery into account."""
        for state in recovery.kills():
            for evidence in _evidence(state):
                self._histories[evidence].append(state.effects)

    def honest(self, unknown: t.Unknown, state: CrashState) -> bool:
        """Whether ``unknown`` may be the best answer that the files of ``state`` allow."""
        if state.within is None:
            return super().honest(unknown, state)
        evidences = list(_evidence(state))
        if evidences[0] not in self._first:
            return True
        done = {_count(state.effects, unknown)}
        for evidence in evidences:
            done |= {_count(effects, unknown) for effects in self._histories[evidence]}
        if len(done) > 1 or any(op.thread and matches(unknown, op) for op in state.effects):
            return True
        losses = self._of_first
        return losses is not None and (
            _leaves_otherwise(losses, unknown, state)
            or _leaves_otherwise(state.within.losses, unknown, state, since=state.within.start)
        )


def _leaves_otherwise(losses: Losses, unknown: t.Unknown, state: CrashState, *, since: int = 0) -> bool:
    """Whether a power loss at which the effect was done another number of times may leave the same files."""
    own, count = _count(state.effects, unknown), 0
    sides = [] if own == 0 else [0]
    for op in losses.trace.ops:
        if isinstance(op, t.Effect) and op.counted and matches(unknown, op):
            sides += [done for done, number in ((op.n - 1, count), (op.n, count + 1)) if number != own]
            count += 1
    return any(losses.may_leave(state.tree, done) for done in sides if done >= since)


def _evidence(state: CrashState) -> Iterator[str]:
    """What a reader can go by: the tree; the tree at the last promise; inside a save, that at the next one."""
    yield evidence_of(state.tree)
    ops, prefixes = state.trace.ops, prefixes_of(state.trace)
    last = next((op.n for op in reversed(ops[: state.done]) if isinstance(op, _PROMISES)), 0)
    following = next((op.n for op in ops[state.done :] if isinstance(op, _PROMISES)), len(ops))
    yield evidence_of(prefixes.tree(last))
    if state.within is not None and state.last_op > last:
        yield evidence_of(prefixes.tree(following))


def _count(effects: Iterable[t.Effect], unknown: t.Unknown) -> int:
    return sum(op.counted and matches(unknown, op) for op in effects)
