"""Two runs watched from outside agree or not: what counts as a difference. Planted liars are among the cheats."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from crashcourse import outside_view, unwatched
from crashlab import Store

if TYPE_CHECKING:
    from pathlib import Path

SAVED = [
    ("create", "dir", "a.1f.tmp"),
    ("write", "dir", "a.1f.tmp"),
    ("move from", "dir", "a.1f.tmp"),
    ("move to", "dir", "a"),
]


def test_random_names_are_the_same() -> None:
    """What was done to them counts, not what they are called; a name that both have is told."""
    other = [(kind, where, name.replace("1f", "2e")) for kind, where, name in SAVED]
    assert unwatched._told(SAVED, other) == ""
    assert unwatched._told(SAVED, [("write", "dir", "a")]).startswith("create dir/*")


def test_writes_in_a_row_are_one() -> None:
    """Into how many calls they are divided is no difference."""
    assert unwatched._collapsed([SAVED[1], SAVED[1], SAVED[2]]) == [SAVED[1], SAVED[2]]


def save(directory: Path, value: int) -> None:
    """In place: bad, and honest."""
    (directory / "value").write_text(str(value))


def load(directory: Path) -> int | None:
    path = directory / "value"
    return int(path.read_text()) if path.exists() else None


@pytest.mark.skipif(sys.platform != "linux", reason="inotify and strace are Linux's")
def test_an_honest_store_is_believed() -> None:
    """By every view, bad as it is."""
    store = Store(save=save, load=load, values=[1, 2], name="honest")
    assert (unwatched.difference(store), outside_view.difference(store)) == ("", "")


def test_barriers_are_counted_where_each_run_does_something_else() -> None:
    """Who makes every run another one must not escape the count; who asks for another number each time is not told."""
    synced, bare = [("fsync", "file 1"), ("write", "file 2")], [("write", "file 1"), ("rename", "file 1")]
    other = [("write", "file 2"), ("fsync", "file 3")]
    assert "sees 1 barriers, and 0" in outside_view._other_barriers((synced, other), (bare, bare[:1]))
    assert outside_view._other_barriers((synced, other), (other, synced)) == ""
    assert outside_view._other_barriers((synced, bare), (bare, bare)) == ""
