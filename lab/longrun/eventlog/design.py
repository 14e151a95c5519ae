"""The pieces of a log that a naive one exchanges; each has its correct form as a default."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from longrun.eventlog import mending, repair
from longrun.eventlog.barriers import sync_data
from longrun.eventlog.lease import Lease
from longrun.eventlog.scan import Reader

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from longrun.eventlog.events import Event
    from longrun.eventlog.lease import Owner
    from longrun.eventlog.scan import Scan


class Reads(Protocol):
    """What reads a session: everything, or LogDamaged, or LogUnsupported."""

    def read(self, directory: Path) -> Scan:
        """What is there; nothing is changed by it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """How a log is written, read and mended.

    * ``sync(descriptor)`` makes a file's bytes durable.
    * ``shows_queued``: projections see a record before it is durable.
    * ``reader`` reads.
    * ``take(directory)`` is the lease, held while the log is open.
    * ``mend(scan)`` makes the files fit for an append: the tail is cut, the last line ended.
    * ``repair(grammar, ask, evidence)`` are the events that close an open turn.
    """

    sync: Callable[[int], None] = sync_data
    shows_queued: bool = False
    reader: Reads = Reader()  # noqa: RUF009 - it is frozen
    take: Callable[[Path], Owner] = Lease.take
    mend: Callable[[Scan], None] = mending.mend
    repair: Callable[..., list[Event]] = repair.repair


DESIGN = Design()
