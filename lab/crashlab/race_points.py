"""Where a second owner enters: the points of a race, their ids, and what two owners left.

``race@12``: the first owner is stopped after its op 12, the second one runs from its start to its end, the first goes
on to its own. ``race@12-3``: the second one is stopped too, after its own op 3, while the first runs to its end.
"""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from crashlab import trace as t
from crashlab.crash.states import CrashState, Prefixes, no_such_op
from crashlab.errors import UsageError
from crashlab.live.race import FIRST, SECOND
from crashlab.observation import shortener
from crashlab.record.proof import replay_proof
from crashlab.tree import Tree

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_ID = re.compile(r"race@(?P<after>\d+)(?:-(?P<switch>\d+))?")


@dataclass(frozen=True, order=True)
class RacePoint:
    """A second owner enters after op ``after`` of the first, and is stopped after its own op ``switch``, if at all.

    >>> RacePoint(12).id, RacePoint(12, 3).id
    ('race@12', 'race@12-3')
    """

    after: int
    switch: int = 0

    @property
    def id(self) -> str:
        """The id of what it leaves."""
        return f"race@{self.after}" + (f"-{self.switch}" if self.switch else "")


def parse(state_id: str, trace: t.Trace) -> RacePoint:
    """The point that an id speaks of. Raises UsageError where it is none, or where this trace has no such op."""
    match = _ID.fullmatch(state_id)
    if match is None:
        text = f"{state_id!r} is no id of a race; expected race@12, or race@12-3 where the second owner is stopped too"
        raise UsageError(text)
    point = RacePoint(int(match["after"]), int(match["switch"] or 0))
    if point.after > len(trace.ops):
        raise no_such_op(trace, state_id, point.after)
    return point


@dataclass(frozen=True, kw_only=True)
class OwnerEnd:
    """How one owner ended. ``killed``: while it was stopped, so the other one did it."""

    who: str
    how: str
    value: Mapping[str, Any] | None = None
    error: str = ""
    traceback: str = ""
    stdout: str = ""
    stderr: str = ""
    left: tuple[str, ...] = ()
    exit_code: int | None = None
    killed: bool = False

    @property
    def said(self) -> str:
        """What it raised or said when it was refused; "" where it was not."""
        if self.how == "raised":
            return self.error
        if self.how == "exit" and self.exit_code != 0 and self.stderr.strip():
            return self.error or self.stderr.strip().splitlines()[-1]
        return str((self.value or {}).get("raised") or "")

    @property
    def what(self) -> str:
        """The call that raised: ``open``, ``load``, ``save``, ``append`` or ``close`` of a Store or Log; else ""."""
        return str((self.value or {}).get("what") or "")


@dataclass(frozen=True, kw_only=True)
class Race:
    """Two owners and what they left. ``ops`` are those of both in order, numbered anew; ``owners`` say whose each is.

    ``turns`` are the stretches: who ran, and from which of the ops on. ``record`` is what happened outside, in order.
    ``reached`` is at how many ops the first owner was stopped, None where its run ended before. ``waited`` names the
    owner that waited for the other one. ``proved``: the ops of both, replayed, give the last tree.
    """

    point: RacePoint
    trace: t.Trace
    owners: tuple[str, ...]
    turns: tuple[tuple[str, int], ...]
    record: tuple[dict[str, Any], ...]
    reached: int | None
    waited: str
    last: Tree
    first: OwnerEnd | None = None
    second: OwnerEnd | None = None
    proved: bool = False

    @property
    def ended_second_at(self) -> int | None:
        """After how many ops of both the second one had made its last, where the first stood still all that time."""
        starts = [start for _, start in self.turns]
        if self.waited or len(starts) < 3:  # noqa: PLR2004 - first, second, first
            return None
        if self.point.switch and starts[-1] < len(self.trace.ops):
            return None  # it went on later
        return starts[2]

    def of(self, who: str) -> int:
        """How many ops this owner made."""
        return self.owners.count(who)


@dataclass(frozen=True, kw_only=True)
class RaceState(CrashState):
    """What a race left: ``trace`` holds the ops of both owners, in order."""

    race: Race = field(repr=False)


def race_of(point: RacePoint, root: str, told: Mapping[str, Any], rebuilt: Sequence[str]) -> Race:
    """The race that a worker tells of."""
    base, last = Tree.from_json(told["base"]), Tree.from_json(told["last"])
    ops = tuple(
        dataclasses.replace(t.op_from_json(op), n=number, thread=int(who == SECOND))
        for number, (who, op) in enumerate(told["ops"], 1)
    )
    trace = t.Trace(root=root, base=base, ops=ops, threads=2)
    shorter = shortener(root)
    ends = [_end(who, form, shorter) for who, form in zip((FIRST, SECOND), told["owners"], strict=False)]
    return Race(
        point=point,
        trace=trace,
        owners=tuple(who for who, _ in told["ops"]),
        turns=tuple((who, start) for who, start in told["turns"]),
        record=tuple(told["record"]),
        reached=told["reached"],
        waited=told["waited"],
        last=last,
        first=ends[0] if ends else None,
        second=ends[1] if len(ends) > 1 else None,
        proved=not replay_proof(trace, last, rebuilt),
    )


def _end(who: str, form: Mapping[str, Any], shorter: Callable[[str], str]) -> OwnerEnd:
    value = form["value"]
    if value is not None and value.get("raised"):
        value = {**value, "raised": shorter(value["raised"])}
    return OwnerEnd(
        who=who,
        how=form["how"],
        value=value,
        error=shorter(form["error"]),
        traceback=shorter(form["traceback"]),
        stdout=shorter(form["stdout"]),
        stderr=shorter(form["stderr"]),
        left=tuple(form["left"]),
        exit_code=form["exit_code"],
        killed=form["killed"],
    )


def state_of_race(race: Race) -> RaceState:
    """What both left when they had ended: the files are the real ones."""
    done = len(race.trace.ops)
    tree = Prefixes(race.trace).tree(done) if race.proved else race.last
    return RaceState(id=race.point.id, fault="race", trace=race.trace, tree=tree, done=done, race=race)


def stretches(race: Race) -> list[tuple[str, int, int]]:
    """Who ran, and the first and the last op of the stretch in the ops of both; empty ones too."""
    bounds = [*(start for _, start in race.turns), len(race.trace.ops)]
    return [(who, start, end) for (who, _), (start, end) in zip(race.turns, pairwise(bounds), strict=True)]
