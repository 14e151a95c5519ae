"""Tests of benchmarks.event_log: it measures what it says; how fast that is, no test asks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks import event_log
from longrun.eventlog.opening import Opening, open_log
from longrun.eventlog.subjects import SESSION

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_one_row_per_length(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Up to the longest that was asked for; by then the log has that many records, and more behind the snapshot."""
    monkeypatch.setattr(event_log, "LENGTHS", (40, 80, 5_000))
    monkeypatch.setattr(event_log, "BARRIERS", 3)
    monkeypatch.setattr(event_log, "LATER", 7)
    event_log.growth(tmp_path, 80)
    heads, *rows = capsys.readouterr().out.splitlines()
    assert len(heads.split("  ")) > 5
    assert [row.split()[0] for row in rows] == ["40", "80"]
    with open_log(tmp_path, SESSION, Opening()) as log:
        assert 80 + 7 < len(log.records) < 120


def test_every_record_of_every_writer_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And no writer waited for more than one sync a record."""
    monkeypatch.setattr(event_log, "EACH", 5)
    assert 0 < event_log.syncs_per_record(tmp_path) <= 1
    with open_log(tmp_path, "writers", Opening()) as log:
        assert sum(record.type == "note" for record in log.records) == 40
