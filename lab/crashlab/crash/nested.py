"""Crashes of a recovery: one recorded recovery, put behind the run whose crash it recovered from.

After a *power loss* what is on the disk is durable: a recovery is a run of its own, whose first tree is
that of the crash state. After a *kill* what the dead process had not synced is still pending, so that
power lost during the recovery may take it: the recovery's ops go on from those of the run, cut at the
kill, over the same inodes. In both cases the ops stand in one trace with what was told outside before.

An id names one crash after the other: ``kill@7/kill@2`` died after op 7 of the run, and the recovery
from that after its own op 2; ``power@9-3/kill@2+4096``, ``kill@7/power@3-1``, and so on to any depth.
Each recovery counts its ops from 1. Where power loses an op of a run before the last one, the number of
that run stands before it, 0 for the recorded run, 1 for its first recovery: ``kill@7/power@3-0:5d2,1``
lost block 2 of the run's op 5 and the recovery's op 1.
"""

from __future__ import annotations

import dataclasses
import hashlib
import re
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from crashlab import trace as t
from crashlab.crash.kill import Cut, cut_points
from crashlab.crash.losses import Losses
from crashlab.crash.states import CrashState, cut, prefixes_of
from crashlab.errors import UsageError
from crashlab.subject import REBUILT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from crashlab.crash.profiles import Profile
    from crashlab.tree import Tree

FAULT = "recovery"
_TOLD = (t.Effect, t.Ack, t.Unknown)
_KILL = re.compile(r"kill@(?P<done>\d+)(?:\+(?P<cut>\d+))?")
_POWER = re.compile(r"power@(?P<done>\d+)(?P<lost>-[^/]+)?")
_COMPOSED = re.compile(r"(^-|,|\.\.|c|x)(\d+)")
_NAMED = re.compile(r"(^-|,|\.\.|c|x)(?:(\d+):)?(\d+)")


def is_power(state: CrashState) -> bool:
    """Whether the last crash that led to ``state`` was a power loss."""
    return state.fault == "power" if state.within is None else state.recipe is not None


def first_of(state: CrashState) -> CrashState:
    """The state of the first crash."""
    return state if state.within is None else first_of(state.within.outer)


class Recovery:
    """One recorded recovery from ``outer``, and the states that a crash of it leaves.

    ``base`` is the tree that the recovery met, numbered as its recorder did, and ``ops`` are its ops.
    ``profiles`` say what a power loss may do there; the other options are those of
    :class:`~crashlab.crash.losses.Losses`.
    """

    def __init__(  # noqa: PLR0913 - options, each by its name
        self,
        outer: CrashState,
        base: Tree,
        ops: Sequence[t.Op],
        *,
        profiles: Sequence[Profile] = (),
        rebuilt: Sequence[str] = REBUILT,
        at: Cut = "page",
        **bounds: Any,
    ) -> None:
        self.outer, self.base, self.told, self._at = outer, base, tuple(ops), at
        earlier = outer.within.starts if outer.within else (0,)
        if is_power(outer):
            before, first = _events(outer), base
            self.starts: tuple[int, ...] = (*(-1 for _ in earlier), len(before))
        else:
            before, first = _until(outer), outer.trace.base
            self.starts = (*earlier, len(before))
        number_of = _same if is_power(outer) else _numbers(outer, base)
        own = (_moved(op, op.n + len(before), number_of) for op in ops)
        self.trace = t.Trace(root=outer.trace.root, base=first, ops=(*before, *own))
        self._options = {"profiles": tuple(profiles), "rebuilt": tuple(rebuilt), **bounds}

    @property
    def start(self) -> int:
        """How many ops of the trace were before this recovery."""
        return self.starts[-1]

    @property
    def ops(self) -> tuple[t.Op, ...]:
        """The recovery's own ops, by their numbers in the whole trace."""
        return self.trace.ops[self.start :]

    @property
    def depth(self) -> int:
        """1 for a recovery from a crash of the recorded run, 2 for one from a crash of that, and so on."""
        return len(self.starts) - 1

    @cached_property
    def losses(self) -> Losses:
        """The power losses during the recovery, by the numbers of the whole trace."""
        return Losses(self.trace, since=self.start, **self._options)

    def to_json(self) -> dict[str, Any]:
        """What the recorder saw: the tree before, and the ops."""
        return {"base": self.base.to_json(), "ops": [t.op_to_json(op) for op in self.told]}

    # --- states --------------------------------------------------------------------------------

    def kills(self) -> Iterator[CrashState]:
        """Every state that a kill of the recovery leaves, in order, equal ones included."""
        yield self._killed(self.start)
        for op in self.ops:
            for cut_bytes in cut_points(op, at=self._at):
                yield self._killed(op.n - 1, cut_bytes)
            yield self._killed(op.n)

    def lost(self, state: CrashState) -> CrashState:
        """A state of :attr:`losses` as one of this recovery."""
        _, dash, lost = state.id.partition("-")
        name = f"{self.outer.id}/power@{state.done - self.start}{_COMPOSED.sub(self._name, dash + lost)}"
        return dataclasses.replace(state, id=name, fault=FAULT, within=self)

    def one(self, crash: str) -> CrashState:
        """The state that ``crash`` leaves, the last part of an id. Raises UsageError where it leaves none."""
        kill, power = _KILL.fullmatch(crash), _POWER.fullmatch(crash)
        match = kill or power
        if match is None:
            text = f"{crash!r} is no crash of a recovery; expected kill@2, kill@2+4096 or power@3-1"
            raise UsageError(text)
        done = self.start + int(match["done"])
        if done > len(self.trace.ops) or (kill and kill["cut"] and done == self.start):
            text = (
                f"no op {match['done']} in the recovery from {self.outer.id} ({len(self.ops)} ops): "
                f"{self.outer.id}/{crash} comes from another program, value or "
                f"runtime version. Use the stored run: crashlab replay {self.outer.id}/{crash} --run .crashlab/runs/…"
            )
            raise UsageError(text)
        if kill is None:
            return self.lost(self.losses.one(f"power@{done}{_NAMED.sub(self._number, match['lost'] or '')}"))
        if kill["cut"] is None:
            return self._killed(done)
        state = self._killed(done - 1, int(kill["cut"]))
        if state.cut_bytes not in cut_points(self.trace.op(done), at=self._at):
            text = f"{state.id}: a kill cuts writes at page ends only; for any byte ask for recovery[cut=byte]"
            raise UsageError(text)
        return state

    def _killed(self, done: int, cut_bytes: int | None = None) -> CrashState:
        state = prefixes_of(self.trace).killed(done, cut_bytes)
        inside = "" if cut_bytes is None else f"+{cut_bytes}"
        name = f"{self.outer.id}/kill@{state.last_op - self.start}{inside}"
        return dataclasses.replace(state, id=name, fault=FAULT, within=self)

    # --- numbers -------------------------------------------------------------------------------

    def run_of(self, n: int) -> tuple[int, int]:
        """To which run op ``n`` of the whole trace belongs, and its number there."""
        run = max((run for run, start in enumerate(self.starts) if 0 <= start < n), default=0)
        return run, n - max(self.starts[run], 0)

    def op_words(self, n: int) -> str:
        """Op ``n`` of the whole trace for people: ``op 2 of the recovery``."""
        run, number = self.run_of(n)
        return f"op {number} of {run_words(run, self.depth)}"

    def _name(self, match: re.Match[str]) -> str:
        run, number = self.run_of(int(match[2]))
        return f"{match[1]}{number}" if run == self.depth else f"{match[1]}{run}:{number}"

    def _number(self, match: re.Match[str]) -> str:
        run = self.depth if match[2] is None else int(match[2])
        if run > self.depth or self.starts[run] < 0:
            text = f"run {run} of {match[0]!r} has nothing that this power loss could take"
            raise UsageError(text)
        return f"{match[1]}{int(match[3]) + self.starts[run]}"

    # --- what was told -------------------------------------------------------------------------

    def outside(self, done: int) -> tuple[int, int] | str:
        """What tells apart how much had been told outside after ``done`` ops of the whole trace.

        Where it is what the recorded run tells too, this is the same pair as there: equal trees are then
        equal states, however they came about.
        """
        effects, acks, unknowns = (counts[done] for counts in self._counts)
        as_recorded = self._as_recorded
        if effects <= as_recorded[0] and acks <= as_recorded[1] and unknowns <= as_recorded[2]:
            return effects, acks
        told = [_told(op) for op in self.trace.ops[:done] if isinstance(op, _TOLD)]
        return hashlib.blake2b(repr(told).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()

    @cached_property
    def _counts(self) -> list[list[int]]:
        return [list(accumulate((isinstance(op, kind) for op in self.trace.ops), initial=0)) for kind in _TOLD]

    @cached_property
    def _as_recorded(self) -> list[int]:
        """How many of the first effects, acks and unknowns are those of the recorded run."""
        recorded = first_of(self.outer).trace
        return [_common(self.trace, recorded, kind) for kind in _TOLD]


def run_words(run: int, depth: int) -> str:
    """A run by its number, of ``depth`` recoveries: ``the run``, ``the recovery``, ``recovery 1``."""
    if run == 0:
        return "the run"
    return "the recovery" if depth == 1 else f"recovery {run}"


def _events(outer: CrashState) -> list[t.Op]:
    """What was told outside before a power loss; it changes no file."""
    events = (op for op in outer.trace.ops[: outer.done] if isinstance(op, t.EVENTS))
    return [dataclasses.replace(op, n=number) for number, op in enumerate(events, start=1)]


def _until(outer: CrashState) -> list[t.Op]:
    """The ops before a kill, and what it left of the one in flight."""
    before = list(outer.trace.ops[: outer.done])
    if outer.cut_bytes is not None:
        before.append(cut(outer.trace.op(outer.last_op), outer.cut_bytes))
    return before


def _same(inode: int) -> int:
    return inode


def _numbers(outer: CrashState, base: Tree) -> Callable[[int], int]:
    """From the numbers of the recovery's recorder to those of the run: the same file under the same name."""
    known = {0: 0}
    for path, inode, _ in base.walk():
        number = outer.tree.lookup(path)
        if number is not None:
            known[inode] = number
    used = [*outer.trace.base.nodes, *(op.inode for op in outer.trace.ops if isinstance(op, t.FileOp))]
    fresh = max([*used, *outer.tree.nodes], default=0) + 1

    def number_of(inode: int) -> int:
        return known.setdefault(inode, fresh + len(known))

    return number_of


def _moved(op: t.Op, n: int, number_of: Callable[[int], int]) -> t.Op:
    if isinstance(op, t.FileOp):
        return dataclasses.replace(op, n=n, inode=number_of(op.inode))
    return dataclasses.replace(op, n=n)


def _told(op: t.Op) -> tuple[object, ...]:
    if isinstance(op, t.Effect):
        return op.KIND, op.name, op.key, op.detail, op.receipt, op.counted
    if isinstance(op, t.Unknown):
        return op.KIND, op.name, op.key, op.detail
    return op.KIND, getattr(op, "value", None)


def _common(trace: t.Trace, recorded: t.Trace, kind: type[t.Op]) -> int:
    pairs = zip(trace.before(len(trace.ops), kind), recorded.before(len(recorded.ops), kind), strict=False)
    count = 0
    for one, other in pairs:
        if _told(one) != _told(other):
            break
        count += 1
    return count
