"""Case 5, an event log: torn tails, glued tails, what nobody forced out, keys and whole batches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from crashlab import Log
from tests.use_cases import journals
from tests.use_cases.cases import kinds, passes

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

BATCHES = [[{"id": "a"}], [{"id": "b"}, {"id": "c", "text": "y" * 6_000}]]


def journal(
    append: Callable[..., Any] = journals.append, read: Callable[..., Any] = journals.read, **options: Any
) -> Log:
    """Two functions as a Log."""
    return Log(append, read, values=BATCHES, **options)


def test_a_journal_that_cuts_off_half_lines_passes(tmp_path: Path) -> None:
    """Every event that was acked is read again, in order, whatever the crash left behind it."""
    passes(journal(), tmp_path)


def test_a_reader_that_stumbles_over_half_a_line_is_found(tmp_path: Path) -> None:
    """One torn line, never acked, hides the acked ones."""
    assert "kill lost" in kinds(journal(read=journals.read_strictly), tmp_path, faults="kill")


def test_a_writer_that_glues_lines_together_is_found(tmp_path: Path) -> None:
    """The reader bears the half line, and the next append spoils itself: one more is appended to find it."""
    assert kinds(journal(append=journals.append_carelessly), tmp_path, faults="kill") == {"kill lost"}


def test_a_journal_that_is_not_forced_out_is_found_by_the_power(tmp_path: Path) -> None:
    """Every kill is borne."""
    passes(journal(append=journals.append_unsynced), tmp_path, faults="kill")
    assert "power lost" in kinds(journal(append=journals.append_unsynced), tmp_path, faults="power")


def test_a_batch_that_must_be_whole_is_asked_for(tmp_path: Path) -> None:
    """Half a batch is well by default, since each event stands alone; ``atomic`` says that it is not."""
    assert kinds(journal(atomic=True), tmp_path, faults="kill") == {"kill torn"}
