"""The exchangeable pieces of the durable agent loop.

The loop is the same for every module of a lesson; a naive module exchanges one piece, and that is
its one fault. ``save_points`` are the kinds of save that are made: R at each opening, A after an
answer, S before each act, B when all calls are answered, E at the end.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from longrun.resume import reconcile

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from longrun.protocol import Checkpoint

SAVE_POINTS = frozenset({"R", "A", "S", "B", "E"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Harness:
    """``save(directory, checkpoint)`` is durable when it returns; ``load(directory)`` gives None for
    nothing there; ``reopen(checkpoint)`` is what a resume makes of a checkpoint before it goes on."""

    save: Callable[[Path, Checkpoint], None]
    load: Callable[[Path], Checkpoint | None]
    save_points: frozenset[str] = SAVE_POINTS
    reopen: Callable[[Checkpoint], Checkpoint] = reconcile.reopen
    decide: Callable[[reconcile.Evidence], reconcile.Decision] = reconcile.decide
