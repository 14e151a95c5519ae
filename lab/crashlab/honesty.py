"""When "I do not know" is honest: where the files cannot tell.

A subject that answers *unknown* to everything would never do harm and never be of use. So an unknown
excuses only where no reader of these files could know better: there are two crash states that
agree on what the subject had to go by, and in one of them the effect was done, in the other not.

What a subject has to go by is the tree itself. But no reader has to draw conclusions from a save that
is not finished: inside one it may go by the tree as it was at the ack, save point or effect before,
or, if it takes the beginning of a mark for the mark, by the tree of the next one. And where threads
do effects side by side, the order that was recorded is one of several: between the start of a thread
and its own next promise nobody can tell what it has done.

Where power may be lost, the other state may be one that only a power loss leaves: what was saved
after the effect, and lost again, tells nobody that it was done.
"""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property
from typing import TYPE_CHECKING

from crashlab import trace as t
from crashlab.crash.states import prefixes_of
from crashlab.values import canonical

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from crashlab.crash.losses import Losses
    from crashlab.crash.states import CrashState
    from crashlab.tree import Tree

_PROMISES = (t.Ack, t.SavePoint, t.Effect)
Identity = tuple[str, str]
"""Name of an effect, and the canonical form of its details."""


def identity(op: t.Effect) -> Identity:
    """What makes two effects the same act. The key is left out: it may carry a run's own id."""
    return op.name, canonical(op.detail)


def matches(unknown: t.Unknown, effect: t.Effect) -> bool:
    """Whether ``unknown`` speaks of ``effect``: the same name, no detail that differs, no other key."""
    if unknown.key is not None and effect.key is not None and unknown.key != effect.key:
        return False
    return unknown.name == effect.name and all(
        name in effect.detail and canonical(effect.detail[name]) == canonical(value)
        for name, value in unknown.detail.items()
    )


class Honesty:
    """Knows, for one trace, which crash states cannot tell whether an effect was done."""

    def __init__(self, trace: t.Trace, states: Iterable[CrashState], losses: Losses | None = None) -> None:
        self._trace = trace
        self._states = states
        self._losses = losses
        self._promised = _last_promises(trace.ops)
        self._next = _next_promises(trace.ops)

    @cached_property
    def _done(self) -> dict[str, set[int]]:
        """Per evidence how many ops were done where it was left; only an unknown needs it, and it may be much work."""
        found: dict[str, set[int]] = defaultdict(set)
        for state in self._states:
            for evidence in self._evidence(state):
                found[evidence].add(state.done)
        return found

    def honest(self, unknown: t.Unknown, state: CrashState) -> bool:
        """Whether ``unknown`` is the best answer that the files of ``state`` allow."""
        counts = [0]
        for op in self._trace.ops:
            counts.append(counts[-1] + (isinstance(op, t.Effect) and op.counted and matches(unknown, op)))
        evidences = self._evidence(state)
        if state.last_op > self._promised[state.done]:  # inside a save
            evidences = (*evidences, evidence_of(prefixes_of(self._trace).tree(self._next[state.done])))
        dones = [self._done.get(evidence, set()) for evidence in evidences]
        if any(len({counts[done] for done in alike}) > 1 for alike in dones):
            return True
        windows = self._unordered(unknown)
        if any(start <= done < end for start, end in windows for alike in dones for done in alike):
            return True
        return self._losses is not None and self._is_left_otherwise(self._losses, unknown, state)

    def _is_left_otherwise(self, losses: Losses, unknown: t.Unknown, state: CrashState) -> bool:
        """Whether a power loss on the other side of such an effect may leave the same files."""
        effects = (op for op in self._trace.ops if isinstance(op, t.Effect) and op.counted and matches(unknown, op))
        sides = [op.n if state.done < op.n else op.n - 1 for op in effects]
        return any(losses.may_leave(state.tree, done) for done in sorted(sides, key=lambda n: abs(n - state.done)))

    def _evidence(self, state: CrashState) -> tuple[str, ...]:
        promised = prefixes_of(self._trace).tree(self._promised[state.done])
        return evidence_of(state.tree), evidence_of(promised)

    def _unordered(self, unknown: t.Unknown) -> Iterator[tuple[int, int]]:
        """Per effect that a thread of its own does: from the thread's start to its next promise, as numbers of ops."""
        ops = self._trace.ops
        for effect in ops:
            if not isinstance(effect, t.Effect) or not effect.thread or not matches(unknown, effect):
                continue
            first = next(op.n for op in ops if op.thread == effect.thread)
            start = max((op.n for op in ops[:first] if op.thread == 0), default=0)
            own = [op.n for op in ops[effect.n :] if op.thread == effect.thread]
            main = [op.n for op in ops[own[-1] if own else effect.n :] if op.thread == 0]
            end = next((n for n in [*own, *main] if isinstance(ops[n - 1], _PROMISES)), len(ops))
            yield start, end


def evidence_of(tree: Tree) -> str:
    """What a reader of ``tree`` can go by: its contents, and the times that were set by hand."""
    return f"{tree.digest} {tree.times_set}"


def _next_promises(ops: tuple[t.Op, ...]) -> list[int]:
    """Per number of completed ops the number of the next ack, save point or effect, or of the last op."""
    following = [len(ops)] * (len(ops) + 1)
    for op in reversed(ops):
        following[op.n - 1] = op.n if isinstance(op, _PROMISES) else following[op.n]
    return following


def _last_promises(ops: tuple[t.Op, ...]) -> list[int]:
    """Per number of completed ops the number of the last ack, save point or effect among them."""
    last = [0]
    for op in ops:
        last.append(op.n if isinstance(op, _PROMISES) else last[-1])
    return last
