"""The naive agents of lesson 6: what each must be found by, where, and what makes it the correct one.

``state`` is one crash state of the fault that shows it, "" where only a sweep finds the gravest; ``kinds`` are all
kinds that its sweep finds, gravest first. ``twin_subject`` is the correct agent, which meets what the naive one met; ""
for that of one file.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from longrun.caps import Caps
from longrun.capstone import (
    correct,
    naive_cap_after_crash,
    naive_cleanup_first,
    naive_no_attempts,
    naive_no_lease,
    naive_waiting_lost,
    naive_wipes_ledger,
)
from longrun.checkpoint import correct as one_file

if TYPE_CHECKING:
    from types import ModuleType

    from longrun.harness import Harness


@dataclass(frozen=True)
class Planted:
    """A naive module, how it is found, and its mend: the one piece that is put right, and the twin that it becomes.

    ``blind`` is a fault that must find nothing; ``never``: no state at all is recovered right. ``beside`` are kinds
    that the one fault may show too, where what a sweep meets hangs on the order of two live owners.
    """

    module: ModuleType
    fault: str
    kinds: tuple[str, ...]
    state: str
    words: str
    piece: str
    twin: Harness
    twin_subject: str
    blind: str = ""
    never: bool = False
    beside: tuple[str, ...] = ()

    def mended(self) -> Harness:
        """The naive harness with its one piece put right."""
        harness: Harness = replace(self.module.HARNESS, **{self.piece: getattr(self.twin, self.piece)})
        return harness


CAPPED = replace(correct.HARNESS, cap=Caps(turns=correct.TURNS))

PLANTED: dict[str, Planted] = {
    "wipes ledger": Planted(
        naive_wipes_ledger,
        "kill",
        ("duplicate-effect",),
        "kill@100",
        "expected 1",
        "history",
        correct.HARNESS,
        "subject_fresh",
        never=True,
    ),
    "no attempts": Planted(
        naive_no_attempts,
        "kill",
        ("missing-effect", "hang"),
        "kill@100",
        "processes died of one call, which is made again: the run never ends",
        "decide",
        correct.HARNESS,
        "subject_poison",
    ),
    "no lease": Planted(
        naive_no_lease,
        "race",
        ("duplicate-effect",),
        "race@60",
        "times, expected 1",
        "lease",
        one_file.HARNESS,
        "",
        blind="kill",
        beside=("stale-write", "diverged", "stuck"),  # a ledger or a checkpoint that both have written to
    ),
    "cleanup first": Planted(
        naive_cleanup_first,
        "kill",
        ("duplicate-effect", "stuck"),
        "",
        "expected 1",
        "save",
        correct.HARNESS,
        "subject_short",
    ),
    "waiting lost": Planted(
        naive_waiting_lost,
        "kill",
        ("missing-effect",),
        "kill@200",
        "nobody is asked: the question is forgotten",
        "ledger",
        correct.HARNESS,
        "subject_waiting",
    ),
    "cap after a crash": Planted(
        naive_cap_after_crash,
        "kill",
        ("diverged",),
        "kill@27",
        "the cap is evaded: 6 turns, at most 5 are right",
        "cap",
        CAPPED,
        "subject_turns",
    ),
}
"""By what is wrong."""

DEFECTS: dict[int, tuple[str, str]] = {
    7: ("capstone/naive_wipes_ledger", "wipes ledger"),
    17: ("capstone/naive_no_attempts", "no attempts"),
}
"""Defects of the published agent that this lesson mends: the naive module, and its row above."""
