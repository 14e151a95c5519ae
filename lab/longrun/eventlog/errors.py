"""Every error of the event log: when you see it, and what to do.

::

    LogError
    ├── LogDamaged      a promised record is gone or not what was written: nothing was touched, restore from a copy
    ├── LogUnsupported  a sound log of a newer format, or with an event that this program does not know: update it
    ├── LogBusy         another process has the session open: wait for it, or inspect
    ├── LogFenced       another writer has taken the session over: this one stopped, open again or leave
    ├── LogBroken       a sync failed, so nobody knows what the disk holds: close, and open again
    └── InvalidEvent    an event that the grammar or its schema refuses; nothing was written
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from longrun.errors import LongrunError

if TYPE_CHECKING:
    from pathlib import Path


class LogError(LongrunError):
    """The root of what an event log raises on its own account."""


class LogDamaged(LogError):  # noqa: N818 - it names the fact, as the protocol of the checkpoints does
    """The log does not hold what it promised. Nothing was touched: the files are the evidence.

    ``kind`` is one of ``bad-line``, ``missing``, ``forked``, ``displaced``, ``grammar``, ``segment``; ``segment``,
    ``line`` (from 1) and ``byte`` say where the good part ends; ``expected`` and ``found`` say what stands there.
    """

    def __init__(  # noqa: PLR0913 - the place, once, all by keyword
        self, path: Path, *, kind: str, segment: int, line: int, byte: int, expected: str, found: str
    ) -> None:
        super().__init__(
            f"{path}: {kind} in segment {segment}, line {line}, byte {byte}: expected {expected}, found {found}. "
            "Nothing was changed; keep the files and restore the session from a copy."
        )
        self.path, self.kind = path, kind
        self.segment, self.line, self.byte = segment, line, byte
        self.expected, self.found = expected, found


class LogUnsupported(LogError):  # noqa: N818 - it names the log
    """A sound log, but not for this program: it was written by a newer one. It is not damaged; nothing was changed."""

    def __init__(self, path: Path, what: str) -> None:
        super().__init__(
            f"{path}: {what}. Nothing was changed; open it with the program that wrote it, or a newer one."
        )
        self.path, self.what = path, what


class LogBusy(LogError):  # noqa: N818 - it names the fact; nothing failed
    """Another process has the session open. Nothing was read, nothing was changed."""


class LogFenced(LogError):  # noqa: N818 - it names what was done to this writer
    """Another writer has taken the session over. This one has written nothing since, and must not."""


class LogBroken(LogError):  # noqa: N818 - it names the handle
    """A sync failed: what the disk holds is unknown, and a second sync would not tell. Open the session again."""


class InvalidEvent(LogError):  # noqa: N818 - it names the event
    """An event that its schema or the grammar refuses. Nothing was written."""
