"""The naive modules of lesson 5: what each must be found by, and its mend.

The mend is applied here: the exchanged piece is given back its correct form, and with it the module must be
the twin, piece by piece. The twin is ``rewind/correct``; that it is clean: ``test_planted_rewind``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from crashlab import trace as t
from longrun.rewind import (
    correct,
    naive_blank_fork_ledger,
    naive_counts_tmp,
    naive_cuts_ledger,
    naive_head_file,
    naive_old_future,
    naive_overwrites_points,
    naive_refunds_tokens,
    naive_shared_head,
    naive_three_digits,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from longrun.rewind.subjects import Ways

Family = Literal["end", "kill", "race"]
OF_WAYS = ("rewind", "fork", "line")
"""Pieces of the ways to go back; all others are pieces of the harness."""


def _nowhere(_trace: t.Trace) -> str:
    """What the end shows needs no crash."""
    return ""


def _beside_a_half_point(trace: t.Trace) -> str:
    """Killed when the second point has a temporary name and no byte yet."""
    return f"kill@{_temporary(trace)[1]}"


def _after_the_rewind(trace: t.Trace) -> str:
    """Killed when the copy is durable, and nothing more has happened."""
    done = _told(trace, "rewind")
    return f"kill@{next(number for number in _temporary(trace) if number > done) - 1}"


def _between_point_and_pointer(trace: t.Trace) -> str:
    """Killed when the second point has its name."""
    return f"kill@{[op.n for op in trace.ops if isinstance(op, t.Link)][1]}"


def _amid_the_fork(trace: t.Trace) -> str:
    """A second owner enters when the first point of the fork has a temporary name."""
    done = _told(trace, "fork")
    return f"race@{[number for number in _temporary(trace) if number < done][-1]}"


def _temporary(trace: t.Trace) -> list[int]:
    """The ops that make the temporary files of points."""
    return [op.n for op in trace.ops if isinstance(op, t.Create) and "points/" in op.path and op.path.endswith(".tmp")]


def _told(trace: t.Trace, name: str) -> int:
    return next(op.n for op in trace.ops if isinstance(op, t.SavePoint) and op.name == name)


@dataclass(frozen=True)
class Planted:
    """A naive module: the family that shows it, the kind, words that the finding must hold, the exchanged pieces.

    ``where`` is the id of a state that shows it, in the trace of its own run.
    """

    module: ModuleType
    family: Family
    kind: str
    reaches: str
    pieces: tuple[str, ...]
    where: Callable[[t.Trace], str] = _nowhere

    def mended(self) -> Ways:
        """The naive ways with the exchanged pieces put right."""
        ways: Ways = self.module.WAYS
        of_ways = {piece: getattr(correct.WAYS, piece) for piece in self.pieces if piece in OF_WAYS}
        of_harness = {piece: getattr(correct.HARNESS, piece) for piece in self.pieces if piece not in OF_WAYS}
        return replace(ways, harness=replace(ways.harness, **of_harness), **of_ways)


PLANTED: dict[str, Planted] = {
    "counts tmp": Planted(
        naive_counts_tmp, "kill", "stuck", "not whole JSON (0 bytes", ("load",), _beside_a_half_point
    ),
    "old future": Planted(
        naive_old_future,
        "kill",
        "diverged",
        "the heads are of the timelines ['main']",
        ("save", "load"),
        _after_the_rewind,
    ),
    "overwrites points": Planted(
        naive_overwrites_points, "end", "lost", "acked points are not there as they were", ("rewind",)
    ),
    "cuts ledger": Planted(naive_cuts_ledger, "end", "duplicate-effect", "send_reply was done twice", ("rewind",)),
    "blank fork ledger": Planted(
        naive_blank_fork_ledger, "end", "duplicate-effect", "send_reply was done twice", ("ledger",)
    ),
    "refunds tokens": Planted(naive_refunds_tokens, "end", "diverged", "tokens_used fell", ("rewind",)),
    "three digits": Planted(naive_three_digits, "end", "diverged", "the head of main is running", ("load",)),
    "head file": Planted(
        naive_head_file,
        "kill",
        "stuck",
        "another writer has saved this point",
        ("save", "load"),
        _between_point_and_pointer,
    ),
    "shared head": Planted(
        naive_shared_head, "race", "stuck", "both owners were refused", ("save", "load", "fork", "line"), _amid_the_fork
    ),
}
"""By what is wrong. What ``end`` shows, the lab finds before it crashes anything: the check fails."""

DEFECTS = {2: "counts tmp", 3: "old future", 13: "three digits", 16: "blank fork ledger"}
"""The defects of the published agent that are faults of this lesson, and the row that is each of them."""
