"""The event log as subjects of crashlab: bare, as a list that only grows; and with an agent that works on it.

An event of the bare log is a ``note``. What is acked was promised, so no crash may lose it, and no damage may hide it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from crashlab.subject import Log
from longrun.eventlog.design import DESIGN
from longrun.eventlog.events import Note
from longrun.eventlog.opening import Opening, open_log

if TYPE_CHECKING:
    from pathlib import Path

    from crashlab.lab import Lab
    from longrun.eventlog.design import Design
    from longrun.eventlog.log import EventLog

SESSION = "s"
LONG = "0123456789abcdef" * 400
SINGLE: tuple[list[Any], ...] = ([{"n": 0}], [{"n": 1, "text": LONG}], [{"n": 2}], [{"n": 3}])
GROUPS: tuple[list[Any], ...] = (
    [{"n": 0}, {"n": 1}],
    [{"n": 2}, {"n": 3, "text": LONG}, {"n": 4, "text": LONG[:3000]}, {"n": 5}],
    [{"n": 6}, {"n": 7}, {"n": 8}],
)


@dataclass(eq=False)
class Handle:
    """A log as a program holds it that goes on after an error: it opens a broken one again.

    After a failed append nobody knows how much of it is there. So whoever repeats it looks first.
    """

    root: Path
    opening: Opening
    log: EventLog
    unsure: bool = False

    def append(self, events: list[Any]) -> None:
        """Append the batch in one flush, and promise it; what an attempt that failed has left there counts."""
        if self.unsure:
            self._look()
            have = self.load()
            there = next(n for n in range(len(events), -1, -1) if events[:n] == have[len(have) - n :])
            events = events[there:]
        self.unsure = True
        for event in events:
            self.log.append(Note(note=event))
        self.log.barrier()
        self.unsure = False

    def _look(self) -> None:
        """Open a broken log again: it is read anew, and what was not promised is written anew."""
        if self.log.broken:
            self.log.abandon()
            self.log = open_log(self.root, SESSION, self.opening)

    def load(self) -> list[Any]:
        """All notes."""
        return [record.data for record in self.log.records if record.type == "note"]

    def close(self) -> None:
        """Let the next writer in."""
        self.log.close()


def bare(design: Design = DESIGN, *, name: str, values: tuple[list[Any], ...] = SINGLE) -> Log:
    """The subject that appends ``values`` to a log of ``design``."""

    def opened(lab: Lab) -> Handle:
        opening = Opening(design=design, writer="w", clock=lambda: 0)
        return Handle(lab.dir, opening, open_log(lab.dir, SESSION, opening))

    return Log(Handle.append, Handle.load, open=opened, close=Handle.close, name=name, values=values)


single = bare(name="eventlog/correct, single appends")
grouped = bare(name="eventlog/correct, group commit", values=GROUPS)
