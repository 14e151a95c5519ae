"""Progress: kept as the course teaches it, and refused where it cannot be read."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import pytest

from crashcourse import progress
from crashcourse.progress import Standing
from crashlab import Store, explore
from crashlab.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path


def saved(folder: Path, value: dict[str, Any]) -> None:
    progress.keep(folder, "one", Standing(**value))


def loaded(folder: Path) -> dict[str, int] | None:
    found = progress.load(folder).get("one")
    return None if found is None else {"best": found.best, "points": found.points}


def test_progress_survives_every_kill_and_power_loss(tmp_path: Path) -> None:
    """The course's own file passes the course's own check, damage included."""
    store = Store(save=saved, load=loaded, values=[{"best": 1, "points": 1}, {"best": 22, "points": 7}])
    report = explore(store, faults="kill,power", out=tmp_path)
    assert report.verdict == "consistent", str(report)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"version": 2, "exercises": {}}', '{"version": 1}', "\udcff"])
def test_a_file_that_cannot_be_read_is_refused_and_left_alone(text: str, tmp_path: Path) -> None:
    """Neither is it taken for a new beginning, nor overwritten by the next check."""
    data = text.encode("utf-8", "surrogateescape")
    (tmp_path / progress.NAME).write_bytes(data)
    for work in (progress.load, functools.partial(progress.keep, slug="one", standing=Standing())):
        with pytest.raises(UsageError, match="move it away to begin anew"):
            work(tmp_path)
    assert (tmp_path / progress.NAME).read_bytes() == data


def test_the_best_is_kept_and_hints_are_not_forgotten(tmp_path: Path) -> None:
    """A worse check lowers the points of today only; another exercise keeps its line."""
    progress.keep(tmp_path, "one", Standing(points=90, best=90, status="fail", hints=2))
    progress.keep(tmp_path, "two", Standing(points=1))
    found = progress.load(tmp_path)
    assert (found["one"].best, found["one"].hints, found["two"].points) == (90, 2, 1)
    assert [Standing(status=status).word for status in ("pass", "fail", "")] == ["done", "started", "started"]
