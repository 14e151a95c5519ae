"""The event log as subjects of crashlab: bare, as a list that only grows; and with an agent that works on it.

An event of the bare log is a ``note``. What is acked was promised, so no crash may lose it, and no damage may hide it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from crashlab.subject import Log
from longrun.eventlog.design import DESIGN
from longrun.eventlog.events import Note
from longrun.eventlog.opening import Opening, open_log

if TYPE_CHECKING:
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


def append(log: EventLog, events: list[Any]) -> None:
    """Append the batch in one flush, and promise it."""
    for event in events:
        log.append(Note(note=event))
    log.barrier()


def load(log: EventLog) -> list[Any]:
    """All notes."""
    return [record.data for record in log.records if record.type == "note"]


def close(log: EventLog) -> None:
    """Let the next writer in."""
    log.close()


def bare(design: Design = DESIGN, *, name: str, values: tuple[list[Any], ...] = SINGLE) -> Log:
    """The subject that appends ``values`` to a log of ``design``."""

    def opened(lab: Lab) -> EventLog:
        return open_log(lab.dir, SESSION, Opening(design=design, writer="w", clock=lambda: 0))

    return Log(append, load, open=opened, close=close, name=name, values=values)


single = bare(name="eventlog/correct, single appends")
grouped = bare(name="eventlog/correct, group commit", values=GROUPS)
