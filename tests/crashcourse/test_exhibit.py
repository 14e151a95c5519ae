"""Tests of crashcourse.exhibit: what is measured is kept and drawn, and what has stopped failing is told."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest

from crashcourse.exhibit import Exhibit, Stale, expect, together
from crashcourse.pictures import Picture, bars

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SEEN: list[Path] = []


def measure(folder: Path) -> dict[str, Any]:
    SEEN.append(folder)
    (folder / "left over").touch()
    return {"b": (1, 2), "a": 3}


def tell(data: dict[str, Any]) -> Iterator[str]:
    yield f"b {data['b']}"


def pictures(data: dict[str, Any]) -> dict[str, Picture]:
    return {"bars": bars("A title", {"a": data["a"]}, unit="things")}


def test_what_is_shown_is_what_is_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With --write data and pictures lie beside it, in the order in which they were measured; nothing else is left."""
    exhibit = Exhibit(tmp_path, measure, tell, pictures)
    assert exhibit.main(["--write"]) == 0
    assert capsys.readouterr().out == "b [1, 2]\n"
    assert list(exhibit.kept()) == ["b", "a"]
    assert exhibit.kept() == exhibit.measured()
    assert (tmp_path / "pictures" / "bars.svg").read_text() == pictures({"a": 3})["bars"].svg
    assert not any(folder.exists() for folder in SEEN)


def test_without_write_nothing_is_written(tmp_path: Path) -> None:
    """A learner may run it anywhere."""
    assert Exhibit(tmp_path, measure, tell, pictures).main([]) == 0
    assert list(tmp_path.iterdir()) == []


def test_an_exhibit_that_goes_well_breaks(tmp_path: Path) -> None:
    """What should fail and does not is no exhibit: nothing is told, nothing is written."""

    def mended(_folder: Path) -> dict[str, Any]:
        expect(1, 2, "replies")
        return {}

    with pytest.raises(Stale, match="replies: found 1, the lesson says 2"):
        Exhibit(tmp_path, mended, tell, pictures).main(["--write"])
    assert list(tmp_path.iterdir()) == []


def test_tasks_keep_their_order_and_their_errors() -> None:
    """Whichever ends first; and one that fails is not swallowed."""
    first = threading.Event()

    def work(task: int) -> int:
        if task == 0 and len(threading.enumerate()) > 2:
            first.wait(5)
        first.set()
        if task == 9:
            raise Stale
        return task * 2

    assert together(work, range(4)) == [0, 2, 4, 6]
    with pytest.raises(Stale):
        together(work, [9])
