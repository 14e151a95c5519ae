"""One save, call by call: what a reader finds where the process is killed, or the power goes, right after each call.

The states are those that crashlab computes from the recorded run; here each is written out and loaded in this
process, since it is a lesson's own code. Nothing is judged: it is told what a reader finds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crashcourse.folders import temporary
from crashlab import directory
from crashlab import trace as t
from crashlab.crash.kill import kill_states
from crashlab.crash.losses import Losses
from crashlab.crash.profiles import parse_profiles
from crashlab.report.folder import RunFolder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from crashlab import Report
    from crashlab.crash.states import CrashState

    Reader = Callable[[Path], Any]


@dataclass(frozen=True)
class Step:
    """A moment of the last save: after which call, and what is found after a kill there, and after a loss of power."""

    after: str
    kill: tuple[str, ...]
    power: tuple[str, ...]


def steps_of(report: Report, load: Reader, *, profile: str) -> list[Step]:
    """The moments from the last call of ``save`` on. ``load(directory)`` gives a short text of what is there."""
    trace = RunFolder.open(Path(report.run), Path(report.run)).trace()
    first = max(op.n for op in trace.ops if isinstance(op, t.Call))
    killed = _found(kill_states(trace), load, first)
    return [
        Step(_words(trace.op(n)), killed.get(n, ()), _lost(trace, n, load, profile))
        for n in range(first, len(trace.ops) + 1)
    ]


def _lost(trace: t.Trace, n: int, load: Reader, profile: str) -> tuple[str, ...]:
    """What is found where the power goes after ``n`` ops: the trace that ends there has this as its last moment."""
    losses = Losses(replace(trace, ops=trace.ops[:n]), parse_profiles(profile))
    states = (named.make() for named in losses.at(n))
    return _found(states, load, n).get(n, ())


def _found(states: Iterable[CrashState], load: Reader, first: int) -> dict[int, tuple[str, ...]]:
    """Per number of ops that were done, what is found; a cut write belongs to the moment before it."""
    found: dict[int, set[str]] = {}
    for state in states:
        if state.done >= first:
            found.setdefault(state.done, set()).add(_loaded(state, load))
    return {done: tuple(sorted(each)) for done, each in found.items()}


def _loaded(state: CrashState, load: Reader) -> str:
    with temporary() as place:
        directory.write(state.tree, place)
        return str(load(Path(place) / "dir"))


def _words(op: t.Op) -> str:
    match op:
        case t.Call():
            return f"{op.name} is called"
        case t.Ack():
            return "save has returned"
        case t.Fsync():
            return "fsync of the directory" if op.path == "dir" else "fsync of the new file"
        case t.Create():
            return "a new file is made"
        case t.Rename():
            return "rename over the old one"
        case t.Truncate():
            return "the old file is emptied"
    return {"write": "its bytes are written"}.get(op.KIND, op.KIND)


def seen(load: Callable[[Path], Any]) -> Callable[[Path], str]:
    """A load in words: which save it gave, nothing, or which error."""

    def words(place: Path) -> str:
        try:
            value = load(place)
        except Exception as error:  # noqa: BLE001 - whatever a reader raises is what is told
            return f"{type(error).__name__}"
        return "nothing" if value is None else f"save {value['seq']}"

    return words


def joined(found: Sequence[str]) -> str:
    """The things found, as a choice.

    >>> joined(["save 1", "save 2"]), joined([])
    ('save 1 or save 2', '')
    """
    return " or ".join(found)
