"""The log of a disk, and which images a crash may leave by it."""

from __future__ import annotations

from typing import Any

import pytest

from crashlab.disk.log import DiskLog, Entry, Flush, Mark, Write, images, pack, unpack
from crashlab.errors import UsageError

A, B, C = (bytes([letter]) * 4096 for letter in b"abc")


def log_of(*entries: Entry) -> DiskLog:
    return DiskLog(1, entries)


def written(log: DiskLog, position: int, **options: Any) -> set[tuple[int, ...]]:
    return {image.positions for image in images(log, position, **{"seed": 1, "count": 1000, **options})}


def test_what_is_flushed_is_in_every_image_and_what_came_later_in_any() -> None:
    """A flush promises the completed writes; later ones show in any combination."""
    log = log_of(Write(0, A, 1), Flush(), Write(4096, B, 3), Write(8192, C, 4))
    assert written(log, 4) == {(), (2,), (3,), (2, 3)}
    assert {image.floor for image in images(log, 4, seed=1, count=9)} == {1}


def test_a_write_that_was_on_its_way_at_the_flush_is_not_promised() -> None:
    """A write issued before a flush and completed after it may be missing."""
    late = log_of(Write(0, A, 2), Flush())
    assert written(late, 2) == {(), (0,)}
    assert written(log_of(Write(0, A, 1), Flush()), 2) == {()}


def test_a_failed_write_is_in_no_image() -> None:
    """The disk said EIO: nothing was written."""
    assert written(log_of(Write(0, A, 1, failed=True), Write(0, B, 2)), 2) == {(), (1,)}


def test_writes_after_the_moment_are_in_no_image() -> None:
    """Power is lost at the position: what was issued later does not exist."""
    assert written(log_of(Write(0, A, 1), Write(4096, B, 2)), 1) == {(), (0,)}


def test_images_are_distinct_by_what_they_write() -> None:
    """Two equal writes to one place make two images, not four."""
    assert len(written(log_of(Write(0, A, 1), Write(0, A, 2)), 2)) == 2


def test_many_writes_are_sampled_by_seed_and_begin_with_none_and_all() -> None:
    """Twenty writes give at most the count, the same for the same seed."""
    log = log_of(*(Write(4096 * n, A, n + 1) for n in range(20)))
    some = [image.positions for image in images(log, 20, seed=3, count=30)]
    assert some[:2] == [(), tuple(range(20))]
    assert len(some) == len(set(some)) == 30
    assert some == [image.positions for image in images(log, 20, seed=3, count=30)]
    assert some != [image.positions for image in images(log, 20, seed=4, count=30)]
    whole = written(log, 20, count=500)
    assert all(tuple(m for m in range(20) if m != n) in whole and (n,) in whole for n in range(20))


def test_a_torn_write_shows_any_of_its_blocks() -> None:
    """With torn, one request of two blocks gives four images."""
    log = log_of(Write(0, A + B, 1))
    assert len(list(images(log, 1, seed=1, count=9))) == 2
    assert len(list(images(log, 1, seed=1, count=9, torn=True))) == 4


def test_the_wire_form_gives_the_log_back() -> None:
    """Failed, late and unfinished writes, marks and flushes survive the way."""
    entries = [Mark(-3), Write(512, b"x", 2), Write(0, A, failed=True, completed_at=3), Write(8192, B), Flush()]
    assert list(unpack(pack(entries))) == entries


def test_a_mark_that_was_never_set_is_an_error() -> None:
    """A misspelt mark does not give the images of some other moment."""
    assert log_of(Mark(1), Flush(), Mark(1)).position(1) == 2
    with pytest.raises(UsageError, match="mark 7 is not in this log"):
        log_of(Mark(1)).position(7)
