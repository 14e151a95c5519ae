"""Crash states: what one fault may leave, as a tree, the outside world's record, and the acks given.

A state's id is a recipe (``kill@7``, ``kill@7+4096``, ``power@9-3``), so that it means the same on
every machine; :mod:`crashlab.crash.ids` follows it. Its digest is the hash of tree, effects and acks:
states with equal digests cannot be told apart by any recovery, and are judged once.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from crashlab import trace as t
from crashlab.errors import UsageError

if TYPE_CHECKING:
    from crashlab.crash.damage import Damage
    from crashlab.crash.nested import Recovery
    from crashlab.crash.power import Recipe
    from crashlab.tree import Tree


@dataclass(frozen=True, kw_only=True)
class CrashState:
    """One directory that a fault may leave, and what happened outside before it.

    ``done`` ops were completed. Where ``cut_bytes`` is set, op ``done + 1`` was in flight and that
    many of its bytes are there. A power loss names the ``profile`` that allows the state, and its
    ``recipe`` there; damage at rest is told in ``damage``. A crash of a recovery says ``within`` which
    one; its ``trace`` then goes on from the first run to that recovery, and ``done`` counts along it.
    """

    id: str
    fault: str
    trace: t.Trace
    tree: Tree
    done: int
    cut_bytes: int | None = None
    profile: str = ""
    recipe: Recipe | None = None
    damage: Damage | None = None
    within: Recovery | None = None

    @property
    def ran(self) -> int:
        """How many ops of the recorded run had completed when it crashed; no recovery adds to them."""
        return self.done if self.within is None else self.within.outer.ran

    @property
    def last_op(self) -> int:
        """The last op that left anything: the one in flight, or the last completed one."""
        return self.done + (self.cut_bytes is not None)

    @cached_property
    def effects(self) -> tuple[t.Effect, ...]:
        """Effects before the crash. They are done, whatever the disk lost."""
        return tuple(op for op in self.trace.ops[: self.done] if isinstance(op, t.Effect))

    @cached_property
    def acks(self) -> tuple[t.Ack, ...]:
        """Acks before the crash."""
        return tuple(op for op in self.trace.ops[: self.done] if isinstance(op, t.Ack))

    @cached_property
    def digest(self) -> str:
        """Hash of tree, effects and acks, as 32 hexadecimal digits."""
        # Of one trace the numbers say which effects and acks they are: its first ones.
        outside = (self.within or prefixes_of(self.trace)).outside(self.done)
        text = f"{self.tree.digest} {self.tree.times_set} {outside}"
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


class Prefixes:
    """The tree after each number of completed ops, made once and shared by all states of a trace."""

    def __init__(self, trace: t.Trace) -> None:
        self.trace = trace
        self._trees = [trace.base]
        self._outside = [(0, 0)]
        for op in trace.ops:
            effects, acks = self._outside[-1]
            self._outside.append((effects + isinstance(op, t.Effect), acks + isinstance(op, t.Ack)))

    def outside(self, done: int) -> tuple[int, int]:
        """How many effects and how many acks are among the first ``done`` ops."""
        return self._outside[done]

    def tree(self, done: int) -> Tree:
        """The tree after the first ``done`` ops."""
        while len(self._trees) <= done:
            self._trees.append(self._trees[-1].apply(self.trace.ops[len(self._trees) - 1]))
        return self._trees[done]

    def killed(self, done: int, cut_bytes: int | None = None) -> CrashState:
        """The state after ``done`` ops, with ``cut_bytes`` of the next one where it was cut."""
        tree, name = self.tree(done), f"kill@{done}"
        if cut_bytes is not None:
            tree, name = tree.apply(cut(self.trace.op(done + 1), cut_bytes)), f"kill@{done + 1}+{cut_bytes}"
        return CrashState(id=name, fault="kill", trace=self.trace, tree=tree, done=done, cut_bytes=cut_bytes)


def cut(op: t.Op, cut_bytes: int) -> t.Write:
    """The first ``cut_bytes`` of a write, as an op. Raises UsageError where nothing can be cut there."""
    if not isinstance(op, t.Write) or not 0 < cut_bytes < len(op.data):
        size = len(op.data) if isinstance(op, t.Write) else 0
        text = f"op {op.n} ({op.KIND}, {size} bytes) cannot be cut after {cut_bytes} bytes"
        raise UsageError(text)
    return t.Write(n=op.n, time_ns=op.time_ns, path=op.path, inode=op.inode, offset=op.offset, data=op.data[:cut_bytes])


def no_such_op(trace: t.Trace, state_id: str, number: int) -> UsageError:
    """The error for an id that speaks of op ``number``, which this trace does not have."""
    text = (
        f"no op {number} in this recording ({len(trace.ops)} ops): {state_id} comes from another program, "
        f"value or runtime version. Use the stored run: crashlab replay {state_id} --run .crashlab/runs/…"
    )
    return UsageError(text)


_KEPT = 32
_kept: list[Prefixes] = []
"""The prefixes that were asked for last, the latest in front; a Trace is costly to hash, so no dictionary."""


def prefixes_of(trace: t.Trace) -> Prefixes:
    """The prefixes of ``trace``; those of the last few traces asked for are kept."""
    if not _kept or _kept[0].trace is not trace:
        known = next((each for each in _kept if each.trace is trace), None)
        if known is not None:
            _kept.remove(known)
        _kept.insert(0, known or Prefixes(trace))
        del _kept[_KEPT:]
    return _kept[0]
