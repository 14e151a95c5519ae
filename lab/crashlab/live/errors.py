"""Errors that happen for real: the recorder's gate lets chosen calls fail, and the subject meets the errno.

Which errno a call may give is the table :data:`ALLOWED` (manual pages of the calls; FAULT_MODEL.md says
what was measured). An error is raised before the real call, so a failed call leaves the files as they
were; of a write that comes up short only the first bytes go through. A barrier that failed is recorded
as failed: its pages are given up, which only a later power loss shows.

Not built: an error that is raised although the change was made; errors of ``stat`` and of ``close`` (no
local file system was ever seen to give one at close); reads, which are :mod:`crashlab.live.reads`.
Programs in other languages are put to the same gate by :mod:`crashlab.record.strace.refusing`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from crashlab.record.watch import Strike

if TYPE_CHECKING:
    from collections.abc import Mapping

PAGE_BYTES = 4096

_MAKING = ("ENOSPC", "EDQUOT", "EROFS", "EIO")
ALLOWED: dict[str, tuple[str, ...]] = {
    "create": (*_MAKING, "EMFILE"),
    "make": _MAKING,
    "write": ("ENOSPC", "EDQUOT", "EFBIG", "EIO", "EROFS"),
    "sync": ("EIO", "EROFS", "ENOSPC", "EDQUOT"),
    "rename": ("EIO", "EROFS", "ENOSPC"),
    "remove": ("EIO", "EROFS"),
    "resize": ("EIO", "EROFS"),
    "attribute": ("EIO", "EROFS"),
    "open": ("EMFILE",),
}
"""Per class of call the errnos that a local file system gives; ``sync`` runs out of room where it allocates late."""

_CALLS: dict[str, tuple[str, ...]] = {
    "create": ("create",),
    "make": ("mkdir", "mkfifo", "mknod", "symlink", "link"),
    "write": ("write", "writev", "pwrite", "pwritev", "sendfile", "copy_file_range", "splice", "posix_fallocate"),
    "sync": ("fsync", "fdatasync", "fcntl"),
    "rename": ("rename", "replace"),
    "remove": ("unlink", "remove", "rmdir"),
    "resize": ("truncate", "ftruncate"),
    "attribute": ("chmod", "fchmod", "lchmod", "utime", "setxattr", "removexattr"),
    "open": ("open",),
}
CLASS_OF_CALL = {call: each for each, calls in _CALLS.items() for call in calls}
CLASS_OF_OP = {
    "create": "create",
    "mkdir": "make",
    "symlink": "make",
    "special": "make",
    "link": "make",
    "write": "write",
    "allocate": "write",
    "fsync": "sync",
    "rename": "rename",
    "unlink": "remove",
    "rmdir": "remove",
    "truncate": "resize",
    "chmod": "attribute",
    "utime": "attribute",
    "setxattr": "attribute",
}
"""From the kind of an op to the class of the call that made it; events and ``sync()`` cannot fail."""

UNTIL, ONCE, FOR_EVER = "until", "once", "for-ever"
"""Until the subject's call has returned; at one call; until the process ends, as where a file system has failed."""


@dataclass
class ErrorGate:
    """Strikes the call that would be op ``at``, and in mode ``until`` what comes after it, as long as :attr:`active`.

    ``variant`` is an errno, or ``short-write``, ``failed-fsync``, ``failed-journal``. ``kind`` is the class of
    the call at ``at`` in the uncrashed run: a run that does something else there is not struck.

    >>> gate = ErrorGate(at=2, variant="ENOSPC", kind="write", mode="until")
    >>> gate.strike(1, "create", 0), gate.strike(2, "write", 100), gate.strike(2, "unlink", 0)
    (None, Strike(error='ENOSPC', take=None), None)
    """

    at: int
    variant: str
    kind: str
    mode: str = UNTIL
    struck: int = 0
    active: bool = True

    @staticmethod
    def of(form: Mapping[str, Any]) -> ErrorGate:
        """The gate of the form that the main process sent."""
        return ErrorGate(at=form["at"], variant=form["variant"], kind=form["kind"], mode=form["mode"])

    def strike(self, n: int, call: str, length: int) -> Strike | None:
        """What the call that would be op ``n`` comes to; None where it goes through."""
        each = CLASS_OF_CALL.get(call, "")
        if not self.active or (not self.struck and (n != self.at or each != self.kind)):
            return None
        if self.struck and self.mode == ONCE:
            return None
        strike = self._strike(each, length)
        self.struck += strike is not None
        return strike

    def _strike(self, each: str, length: int) -> Strike | None:
        if self.variant == "short-write":
            # The first bytes are taken, up to a page boundary; where that is all of them, half. Then no room is left.
            if each == "write" and not self.struck and length > 1:
                whole = (length - 1) // PAGE_BYTES * PAGE_BYTES
                return Strike("short", whole or length // 2)
            return Strike("ENOSPC") if "ENOSPC" in ALLOWED.get(each, ()) else None
        if self.variant == "failed-fsync":
            return Strike("EIO")
        if self.variant == "failed-journal":
            return Strike("EIO" if each == "sync" and not self.struck else "EROFS")
        return Strike(self.variant) if self.variant in ALLOWED.get(each, ()) else None

    def before(self, n: int) -> None:
        """Nothing happens between calls."""

    def cut_bytes(self, _n: int, _length: int) -> int | None:
        """No write is cut by a death."""
        return None

    def die(self) -> NoReturn:
        """Never called: nobody dies here."""
        raise AssertionError

    def end(self) -> None:
        """The run is over."""
