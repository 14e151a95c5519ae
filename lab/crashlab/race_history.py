"""The calls of two owners of one Store or Log, in time: which values may be there when both have ended.

A call is begun, and may be acked; between the two nobody can say whether it counts yet. A call that raised or never
came back may count from its beginning on. So a value may be there unless a later one was promised, where *later*
means: begun after the ack of the first. Two calls that overlap may count in either order. This is what is called
linearizable of a register (Herlihy and Wing, 1990); the last one acked wins where none overlap.

An ack of the subject's own, inside its save, is the ack of that call.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import chain
from math import inf
from typing import TYPE_CHECKING, Any

from crashlab import trace as t
from crashlab.live.race import FIRST, LOADED, LOADING, OPENED, OPENING, SECOND
from crashlab.values import canonical

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


@dataclass
class Call:
    """One save or append: by whom, of what, and at which lines of the record it began and was acked."""

    who: str
    value: Any
    start: int
    end: float = inf

    @property
    def acked(self) -> bool:
        """Whether it was promised."""
        return self.end != inf


class History:
    """What two owners did to one Store or Log.

    >>> call, ack = {"op": "call", "n": 1, "name": "save"}, {"op": "ack", "n": 2}
    >>> record = [
    ...     {"who": "first", "op": {**call, "value": 1}},
    ...     {"who": "second", "op": {**call, "value": 2}}, {"who": "second", "op": {**ack, "value": 2}},
    ...     {"who": "first", "op": {**ack, "value": 1}},
    ... ]
    >>> sorted(History(record).allowed()), sorted(History(record[1:3]).allowed())
    (['1', '2'], ['2'])
    """

    def __init__(self, record: Sequence[Mapping[str, Any]]) -> None:
        self.calls: list[Call] = []
        self._marks: dict[tuple[str, str], int] = {}
        open_calls: dict[str, Call] = {}
        for number, line in enumerate(record):
            who = line["who"]
            if "mark" in line:
                self._marks.setdefault((who, line["mark"]), number)
                continue
            kind = line["op"]["op"]
            if kind == t.Call.KIND:
                open_calls[who] = Call(who, line["op"].get("value"), number)
                self.calls.append(open_calls[who])
            elif kind == t.Ack.KIND and who in open_calls:
                open_calls.pop(who).end = number

    def allowed(self, start: float = inf, end: float = inf) -> set[str]:
        """The values, in canonical form, that a load from ``start`` to ``end`` may give; else one after all calls."""
        begun = [call for call in self.calls if call.start < end]
        kept = (call for call in begun if not self._superseded(call, start))
        return {canonical(call.value) for call in kept}

    def _superseded(self, call: Call, start: float) -> bool:
        return any(other.start > call.end and other.end < start for other in self.calls if other.acked)

    def known(self) -> set[str]:
        """Every value that was ever begun to be saved, in canonical form."""
        return {canonical(call.value) for call in self.calls}

    def any_acked(self, before: float = inf) -> bool:
        """Whether any call was acked before that line of the record."""
        return any(call.end < before for call in self.calls)

    @property
    def loading(self) -> tuple[float, float]:
        """From which line to which the second owner loaded."""
        return self._marks.get((SECOND, LOADING), inf), self._marks.get((SECOND, LOADED), inf)

    def promised(self) -> list[Call]:
        """The acked calls, in the order of their acks."""
        return sorted((call for call in self.calls if call.acked), key=lambda call: call.end)

    # --- who is the older owner ------------------------------------------------------------------

    def stale(self, *, opens: bool) -> Call | None:
        """A call of the older owner that began after the newer one had taken over, and was acked all the same.

        The first owner is the older one where it had opened (a subject without ``open``: begun a call) before the
        second one came to open. The second one has taken over with its first ack. A call that had begun before that
        is excused: between the check of a fence and the change nothing protects (the stated limit of a lease).
        """
        entered = self._marks.get((SECOND, OPENING), inf)
        since = self._marks.get((FIRST, OPENED), inf) if opens else min((c.start for c in self._of(FIRST)), default=inf)
        taken = min((call.end for call in self._of(SECOND)), default=inf)
        if since >= entered:
            return None
        return next((call for call in self._of(FIRST) if call.start > taken and call.acked), None)

    def _of(self, who: str) -> list[Call]:
        return [call for call in self.calls if call.who == who]

    # --- logs ------------------------------------------------------------------------------------

    def log_problem(
        self, found: Sequence[Any], *, keyed: bool, atomic: bool, until: float = inf
    ) -> tuple[str, str] | None:
        """What is wrong with the events ``found`` at line ``until``, as a kind and in words; None where nothing is.

        Demanded: every acked event is there, of each owner in its order; what was acked before the second owner began
        its call stands before what that call brought; nothing else is there but events of calls that had begun. Where
        events have keys, one that both append is there once.
        """
        begun = [call for call in self.calls if call.start < until]
        acked = [call for call in begun if call.end < until]
        there = [canonical(event) for event in found]
        least, most = (_counted(calls, keyed=keyed) for calls in (acked, begun))
        if strange := Counter(there) - most:
            known = _counted(begun, keyed=False)
            if not set(strange) - set(known):
                return "duplicate-entry", f"{_events(strange)} there more often than appended"
            return "torn", f"{_events(strange)} there that nobody appended"
        if gone := least - Counter(there):
            return "lost", f"{_events(gone)} acked and not there"
        for who in (FIRST, SECOND):
            mine = list(chain.from_iterable(map(canonical, call.value) for call in acked if call.who == who))
            if not keyed and not _is_within(mine, there):
                return "hole", f"the events of the {who} owner are not in the order in which it appended them"
        if atomic and (torn := _cut_batch([call for call in begun if call not in acked], there, least)):
            return "torn", f"{torn} events of one atomic batch are there"
        return self._moved(there, acked, keyed=keyed)

    def _moved(self, there: list[str], acked: list[Call], *, keyed: bool) -> tuple[str, str] | None:
        entered = min((call.start for call in self._of(SECOND)), default=inf)
        before = list(chain.from_iterable(map(canonical, call.value) for call in acked if call.end < entered))
        before = list(dict.fromkeys(before)) if keyed else before
        if there[: len(before)] != before:
            return (
                "hole",
                f"the {len(before)} events that were acked before the second owner appended do not come first",
            )
        return None


def _counted(calls: Iterable[Call], *, keyed: bool) -> Counter[str]:
    events = Counter(canonical(event) for call in calls for event in call.value)
    return Counter(dict.fromkeys(events, 1)) if keyed else events


def _events(counted: Counter[str]) -> str:
    number = counted.total()
    return "1 event is" if number == 1 else f"{number} events are"


def _is_within(wanted: list[str], there: list[str]) -> bool:
    """Whether ``wanted`` is there in its order, with anything between."""
    rest = iter(there)
    return all(event in rest for event in wanted)


def _cut_batch(flying: Iterable[Call], there: list[str], least: Counter[str]) -> str:
    """Which part of a batch that was never acked is there, in words; "" where all or nothing of each is."""
    more = Counter(there) - least
    for call in flying:
        batch = Counter(map(canonical, call.value))
        some = (batch & more).total()
        if 0 < some < batch.total():
            return f"{some} of {batch.total()}"
    return ""
