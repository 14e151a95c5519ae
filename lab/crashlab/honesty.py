"""When "I do not know" is honest: where the files cannot tell.

A subject that answers *unknown* to everything would never do harm and never be of use. So an unknown
excuses only where no reader of these files could know better: there are two crash states that
agree on what the subject had to go by, and in one of them the effect was done, in the other not.

What a subject has to go by is the tree itself; and, more mildly, the tree as it was at the last
ack, save point or effect, since no reader has to draw conclusions from a save that is not
finished. An unknown is honest if either shows both outcomes.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from crashlab import trace as t
from crashlab.crash.states import prefixes_of
from crashlab.values import canonical

if TYPE_CHECKING:
    from collections.abc import Iterable

    from crashlab.crash.states import CrashState

_PROMISES = (t.Ack, t.SavePoint, t.Effect)
Identity = tuple[str, str]
"""Name of an effect, and the canonical form of its details."""


def identity(op: t.Effect) -> Identity:
    """What makes two effects the same act. The key is left out: it may carry a run's own id."""
    return op.name, canonical(op.detail)


def matches(unknown: t.Unknown, effect: t.Effect) -> bool:
    """Whether ``unknown`` speaks of ``effect``: the same name, and no detail that differs."""
    return unknown.name == effect.name and all(
        name in effect.detail and canonical(effect.detail[name]) == canonical(value)
        for name, value in unknown.detail.items()
    )


class Honesty:
    """Knows, for one trace, which crash states cannot tell whether an effect was done."""

    def __init__(self, trace: t.Trace, states: Iterable[CrashState]) -> None:
        self._trace = trace
        self._promised = _last_promises(trace.ops)
        self._done: dict[str, set[int]] = defaultdict(set)
        for state in states:
            for evidence in self._evidence(state):
                self._done[evidence].add(state.done)

    def honest(self, unknown: t.Unknown, state: CrashState) -> bool:
        """Whether ``unknown`` is the best answer that the files of ``state`` allow."""
        counts = [0]
        for op in self._trace.ops:
            counts.append(counts[-1] + (isinstance(op, t.Effect) and op.counted and matches(unknown, op)))
        return any(len({counts[done] for done in self._done[evidence]}) > 1 for evidence in self._evidence(state))

    def _evidence(self, state: CrashState) -> tuple[str, str]:
        promised = prefixes_of(self._trace).tree(self._promised[state.done])
        return f"tree {state.tree.digest}", f"promised {promised.digest}"


def _last_promises(ops: tuple[t.Op, ...]) -> list[int]:
    """Per number of completed ops the number of the last ack, save point or effect among them."""
    last = [0]
    for op in ops:
        last.append(op.n if isinstance(op, _PROMISES) else last[-1])
    return last
