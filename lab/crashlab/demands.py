"""What the oracle goes by: the uncrashed run, and one thing that was wrong."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from crashlab import trace as t
from crashlab.subject import PROGRAMS, Commands
from crashlab.values import canonical, shown

if TYPE_CHECKING:
    from collections.abc import Iterable

    from crashlab.crash.states import CrashState
    from crashlab.observation import Answer, Step


@dataclass(frozen=True, kw_only=True)
class Reference:
    """The uncrashed run that crashes are measured against.

    ``end`` is its end in tagged form (Subject). ``nothing`` is what ``load`` gave on an empty directory:
    ``{"value": form}`` or ``{"error": type name}`` (Store, Log). ``rebuilt`` are the globs of files that
    the program builds anew.
    """

    kind: str
    trace: t.Trace
    end: Any = None
    ended: bool = True
    has_check: bool = False
    atomic: bool = False
    nothing: dict[str, Any] = field(default_factory=dict)
    rebuilt: tuple[str, ...] = ()

    @property
    def program(self) -> bool:
        """Whether it is a whole program, with an end, and not a store or a log."""
        return self.kind in PROGRAMS

    def calls(self, done: int) -> list[Any]:
        """The values of the calls started among the first ``done`` ops, see :func:`history`."""
        return history(self.trace.ops[:done], log=self.kind == "Log")[0]

    def acked(self, done: int) -> int:
        """How many of these calls were acked: by returning, or earlier by the subject's own ``lab.ack``."""
        return history(self.trace.ops[:done], log=self.kind == "Log")[1]


def history(ops: Iterable[t.Op], *, log: bool) -> tuple[list[Any], int]:
    """The values of the calls in order, and how many of them were acked.

    Where a run went on after a crash, its ``load`` says what became of the call that was in flight: it stays
    where it was loaded, a batch of a ``log`` with those of its events that are there, and is gone otherwise.
    What was loaded was promised to nobody, so that power may still take it. The next ack promises it: a
    ``Store`` is never to go behind that, and a ``Log`` has it before the batch that was acked.
    """
    values: list[Any] = []
    acked = loaded = 0
    waiting = False
    for op in ops:
        if isinstance(op, t.Call) and op.name == t.LOAD:
            values[acked:] = _left(values[:acked], values[acked:], op.value, log=log)
            loaded = len(values) - acked
        elif isinstance(op, t.Call):
            values.append(op.value)
        elif isinstance(op, t.Ack) and waiting:
            acked, loaded = acked + loaded + 1, 0
        if isinstance(op, (t.Call, t.Ack)):
            waiting = isinstance(op, t.Call) and op.name != t.LOAD
    return values, acked


def _left(acked: list[Any], flying: list[Any], found: Any, *, log: bool) -> list[Any]:
    """What was loaded beyond what was acked."""
    if not log:
        return [found] if canonical(found) in map(canonical, flying) else []
    more = (found or [])[sum(map(len, acked)) :]
    return [more] if more else []


@dataclass(frozen=True, kw_only=True)
class Problem:
    """One thing that was wrong: a kind of the result model, in words, and the effect's name if it is one's."""

    kind: str
    summary: str
    step: str = "first"
    effect: str = ""
    expected: tuple[str, ...] = ()


WHOLE_BATCH = "the batch whole, or none of it"
"""What is right of a batch that is stored whole or not at all."""


def mend_check(reference: Reference) -> str:
    """What to do where the check itself failed: a function and a command answer in different ways."""
    if reference.kind == Commands.kind:
        return "Mend the check: it must exit with 0 where all is right, or with 1 where it is wrong."
    return "Mend the check: it must raise AssertionError or Violation, or return."


def words(op: t.Effect | t.Unknown) -> str:
    """An effect for people: ``mail to=ada``."""
    quote = '"'
    details = " ".join(f"{name}={shown(value).strip(quote)}" for name, value in op.detail.items())
    return f"{op.name} {details}".strip()


def effect_of(state: CrashState, problem: Problem) -> t.Effect | None:
    """The last effect before the crash of which ``problem`` speaks: others may have the same name."""
    done = (op for op in reversed(state.effects) if op.counted)
    return next((op for op in done if problem.summary.startswith(f"{words(op)} done ")), None)


def unknowns_of(step: Step) -> list[t.Unknown]:
    """What a step reported unknown."""
    return [op for op in step.events if isinstance(op, t.Unknown)]


def tells_unknown(answer: Answer) -> bool:
    """Whether any step reported an effect unknown."""
    return any(unknowns_of(step) for step in answer.steps)


def told_before(reference: Reference, state: CrashState) -> list[t.Unknown]:
    """What recoveries that died had reported unknown.

    A report is out of the process at once, as an effect is: a person has it, and no crash takes it back. What the
    uncrashed run reports itself says nothing of the crash.
    """
    if state.within is None:
        return []
    own = [_form(op) for op in reference.trace.ops if isinstance(op, t.Unknown)]
    found = []
    for op in state.trace.ops[: state.done]:
        if isinstance(op, t.Unknown):
            if _form(op) in own:
                own.remove(_form(op))
            else:
                found.append(op)
    return found


def _form(op: t.Unknown) -> tuple[str, str | None, str]:
    return op.name, op.key, canonical(op.detail)
