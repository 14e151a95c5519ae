"""The one fault: the lease is a file with the number of a process in it, and nothing bears a fence.

Between the look whether the owner lives and the own number in the file another process may do the same. Then two
write, neither notices, and a number is given twice.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from longrun.eventlog.design import DESIGN as CORRECT
from longrun.eventlog.errors import LogBusy
from longrun.eventlog.segments import LEASE_NAME
from longrun.eventlog.subjects import bare

if TYPE_CHECKING:
    from pathlib import Path


def lives(path: Path) -> bool:
    """Whether another process is named there, and lives."""
    try:
        pid = int(path.read_text() or 0)
        os.kill(pid, 0)
    except (FileNotFoundError, ValueError, ProcessLookupError):
        return False
    return pid not in (0, os.getpid())


@dataclass(eq=False)
class PidFile:
    """A claim that others are asked to respect."""

    path: Path
    stored: int = -1

    @staticmethod
    def take(directory: Path) -> PidFile:
        """Look, then write."""
        path = directory / LEASE_NAME
        if lives(path):
            text = f"{directory}: another process has this session open"
            raise LogBusy(text)
        path.write_text(str(os.getpid()))
        return PidFile(path)

    def claim(self, fence: int, promised: int) -> None:
        """There are no fences."""

    def require(self, fence: int, descriptor: int, size: int) -> None:
        """It was ours, so it is."""

    def close(self) -> None:
        """Take the file away."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path)


DESIGN = replace(CORRECT, take=PidFile.take)

subject = bare(DESIGN, name="eventlog/naive_pidfile")
