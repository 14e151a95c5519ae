"""The naive modules of lessons 1 to 3 that a kill, a second kill or damage finds out: what each must be found by.

The mend is applied here: the exchanged piece is given back its correct form, and with it the harness must be
the twin, piece by piece. The twins are clean: ``test_planted_resumes``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from longrun.checkpoint import correct, naive_cut_stream, naive_late_first_save, naive_tokens_after_b
from longrun.memory import naive_memory_only, naive_notes
from longrun.resume import (
    naive_first_call_only,
    naive_late_turn,
    naive_no_end,
    naive_rerun_all,
    naive_reset_on_error,
    naive_save_before_push,
    naive_two_outcomes,
    naive_unsaved_reconcile,
    trusting,
)

if TYPE_CHECKING:
    from types import ModuleType

    from longrun.harness import Harness


@dataclass(frozen=True)
class Planted:
    """A naive module, the kind it must be found by, the faults that show it, those that do not, and its mend.

    ``never``: no crash state at all is recovered right, since a second resume is wrong whatever came before.
    """

    module: ModuleType
    kind: str
    pieces: tuple[str, ...]
    faults: str = "kill"
    blind: str = ""
    twin: Harness = correct.HARNESS
    never: bool = False

    def mended(self) -> Harness:
        """The naive harness with the exchanged pieces put right."""
        right: dict[str, Any] = {piece: getattr(self.twin, piece) for piece in self.pieces}
        return replace(self.module.HARNESS, **right)


ALL_IN_FILES = ("save", "load", "save_points", "ledger")
NESTED = "kill,recovery"
DAMAGED = "damage:empty,damage:nested"

PLANTED: dict[str, Planted] = {
    "memory only": Planted(naive_memory_only, "duplicate-effect", ALL_IN_FILES, never=True),
    "notes": Planted(naive_notes, "duplicate-effect", ALL_IN_FILES, never=True),
    "late first save": Planted(naive_late_first_save, "diverged", ("save_points",)),
    "tokens after B": Planted(naive_tokens_after_b, "diverged", ("book",)),
    "cut stream": Planted(naive_cut_stream, "duplicate-effect", ("accept",)),
    "rerun all": Planted(naive_rerun_all, "duplicate-effect", ("decide",)),
    "save before push": Planted(naive_save_before_push, "invalid-transcript", ("save",), twin=trusting.HARNESS),
    "first call only": Planted(naive_first_call_only, "invalid-transcript", ("save",), twin=trusting.HARNESS),
    "no end": Planted(naive_no_end, "invalid-transcript", ("save",), never=True),
    "late turn": Planted(naive_late_turn, "diverged", ("book",), twin=trusting.HARNESS),
    "reset on error": Planted(naive_reset_on_error, "silent-reset", ("load",), faults=DAMAGED, blind="kill"),
    "two outcomes": Planted(
        naive_two_outcomes, "invalid-transcript", ("reconcile",), faults=NESTED, blind="kill", twin=trusting.HARNESS
    ),
    "unsaved reconcile": Planted(naive_unsaved_reconcile, "diverged", ("reconcile",), faults=NESTED, blind="kill"),
}
"""By what is wrong. ``blind`` is checked with the others, and must find nothing."""

REACHES: dict[str, str] = {
    "late first save": "the server counts more requests than the checkpoint",
    "tokens after B": "cost more than the checkpoint says",
    "cut stream": "You get 1000 yen back",
    "save before push": "unexpected `tool_use_id` found in `tool_result` blocks",
    "first call only": "`tool_use` ids were found without `tool_result` blocks immediately after",
    "no end": "does not support assistant message prefill",
    "late turn": "turns is not the number of assistant messages",
    "two outcomes": "each tool_use must have a single result",
    "unsaved reconcile": "the server counts more requests than the checkpoint",
}
"""Words that the finding must hold: the fault is found for what it is."""
