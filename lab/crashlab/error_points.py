"""Which errors are tried: each errno at each op that may give it, in each mode; and their ids.

``error@7:ENOSPC`` strikes at op 7 of the uncrashed run and lasts until the subject's call has returned, of a
program until it has ended; ``error@7:ENOSPC+once`` strikes one call only. ``error@7:failed-fsync/power@9-3`` is a
power loss in the run whose barrier at op 7 failed; its numbers are those of that run. ``error@r2:EIO-read`` fails the
second read of the recovery of the finished run, ``kill@40/error@r2:EIO-read`` that of the state after a kill.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from crashlab import trace as t
from crashlab.crash.states import CrashState, no_such_op
from crashlab.errors import UsageError
from crashlab.live.errors import ALLOWED, CLASS_OF_OP, FOR_EVER, ONCE, UNTIL
from crashlab.tree import ROOT_INODE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from crashlab.crash.losses import Losses

SHORT, FAILED_FSYNC, FAILED_JOURNAL, READ = "short-write", "failed-fsync", "failed-journal", "EIO-read"
STANDARD: tuple[str, ...] = ("ENOSPC", "EIO", SHORT, FAILED_FSYNC, READ)
"""Variants that are tried where none is named."""

VARIANTS: tuple[str, ...] = (*STANDARD, "EDQUOT", "EROFS", "EMFILE", "EFBIG", FAILED_JOURNAL)

_ID = re.compile(
    r"(?:kill@(?P<base>\d+)/)?error@(?P<read>r?)(?P<n>\d+):(?P<variant>[\w-]+)(?P<once>\+once)?"
    r"(?:/(?P<loss>power@.+))?"
)


@dataclass(frozen=True, kw_only=True)
class ErrorPoint:
    """One error: where it strikes first, what it is, how long it lasts."""

    n: int
    variant: str
    kind: str
    mode: str = UNTIL

    @property
    def id(self) -> str:
        """The id of the state that it leaves."""
        return f"error@{self.n}:{self.variant}" + ("+once" if self._says_once else "")

    @property
    def _says_once(self) -> bool:
        return self.mode == ONCE and self.variant != FAILED_FSYNC

    @property
    def form(self) -> dict[str, Any]:
        """What the process of the subject gets."""
        return {"at": self.n, "variant": self.variant, "kind": self.kind, "mode": self.mode}


@dataclass(frozen=True, kw_only=True)
class ErrorState(CrashState):
    """What an error left: ``trace`` is that of the run that met it, ``point`` the error.

    ``read`` is the number of the read that failed, where a recovery met it. ``loss`` is the state of the power
    loss that came after it, one of ``losses`` of that run.
    """

    point: ErrorPoint
    read: int = 0
    loss: CrashState | None = None
    losses: Losses | None = None


@dataclass(frozen=True, kw_only=True)
class Asking:
    """An id of an error, taken apart."""

    n: int
    variant: str
    once: bool
    is_read: bool
    base: int | None
    loss: str


def parse(state_id: str) -> Asking:
    """Take the id of an error apart. Raises UsageError where it is none.

    >>> parse("error@7:ENOSPC").n
    7
    """
    match = _ID.fullmatch(state_id)
    if match is None or match["variant"] not in VARIANTS or bool(match["read"]) != (match["variant"] == READ):
        text = (
            f"{state_id!r} is no id of an error; expected error@7:ENOSPC, error@7:EIO+once, "
            "error@7:failed-fsync/power@9-3 or error@r2:EIO-read"
        )
        raise UsageError(text)
    return Asking(
        n=int(match["n"]),
        variant=match["variant"],
        once=bool(match["once"]),
        is_read=bool(match["read"]),
        base=None if match["base"] is None else int(match["base"]),
        loss=match["loss"] or "",
    )


def points(trace: t.Trace, variants: Sequence[str]) -> Iterator[ErrorPoint]:
    """Every error of these variants at every op that may give it, the lasting ones before the single ones."""
    for variant in variants or STANDARD:
        for op in trace.ops:
            kind = CLASS_OF_OP.get(op.KIND, "")
            for mode in _modes(variant, kind, op):
                yield ErrorPoint(n=op.n, variant=variant, kind=kind, mode=mode)


def _modes(variant: str, kind: str, op: t.Op) -> tuple[str, ...]:
    if variant == SHORT:
        return (UNTIL, ONCE) if isinstance(op, t.Write) and len(op.data) > 1 else ()
    if variant == FAILED_FSYNC:
        return (ONCE,) if kind == "sync" else ()
    if variant == FAILED_JOURNAL:
        return (FOR_EVER,) if kind else ()
    return (UNTIL, ONCE) if variant in ALLOWED.get(kind, ()) else ()


def is_nameless(op: t.Op) -> bool:
    """Whether an op is of a file that had no name yet (``O_TMPFILE``).

    Such ops are numbered when a link gives the file its name, so no call can be met at one of them: while the program
    makes it, nobody knows yet whether it is an op at all.
    """
    return isinstance(op, t.FileOp) and not op.path and op.inode != ROOT_INODE


def point_of(trace: t.Trace, asking: Asking, state_id: str) -> ErrorPoint:
    """The point that an id speaks of. Raises UsageError where this trace has no such one."""
    if not 1 <= asking.n <= len(trace.ops):
        raise no_such_op(trace, state_id, asking.n)
    op = trace.op(asking.n)
    if is_nameless(op):
        text = (
            f"op {op.n} ({op.KIND}) is of a file without a name (O_TMPFILE) and cannot be made to fail; name the op "
            "of the link that names it, or a later one"
        )
        raise UsageError(text)
    kind = CLASS_OF_OP.get(op.KIND, "")
    modes = _modes(asking.variant, kind, op)
    mode = ONCE if asking.once or asking.variant == FAILED_FSYNC else next(iter(modes), "")
    if mode not in modes:
        allowed = ", ".join(ALLOWED.get(kind, ())) or "none"
        text = f"op {op.n} ({op.KIND}) cannot give {asking.variant}; errnos of such an op: {allowed}"
        raise UsageError(text)
    return ErrorPoint(n=asking.n, variant=asking.variant, kind=kind, mode=mode)
