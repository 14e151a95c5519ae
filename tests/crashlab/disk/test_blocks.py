"""The disks in memory."""

from __future__ import annotations

import errno
import random
from typing import TYPE_CHECKING

from crashlab.disk.blocks import Live, Shown, load, read, write
from crashlab.disk.log import NEVER, DiskLog, Flush, Write, images

if TYPE_CHECKING:
    from pathlib import Path

A, B = b"a" * 4096, b"b" * 4096


def live() -> tuple[Live, list[tuple[int, int, int]]]:
    answers: list[tuple[int, int, int]] = []
    return Live(lambda *answer: answers.append(answer)), answers


def test_blocks_are_a_flat_file() -> None:
    """Random reads and writes at odd places give what a byte array gives."""
    chooser = random.Random(1)  # noqa: S311 - seeded test data
    blocks: dict[int, bytes] = {}
    flat = bytearray(40_000)
    for _ in range(500):
        offset = chooser.randrange(20_000)
        data = chooser.randbytes(chooser.choice([1, 512, 4096, 10_000]))
        write(blocks, offset, data)
        flat[offset : offset + len(data)] = data
        start, size = chooser.randrange(20_000), chooser.randrange(1, 20_000)
        assert read(blocks, start, size) == flat[start : start + size]


def test_a_sparse_file_is_taken_in_whole(tmp_path: Path) -> None:
    """Holes and zero blocks are left out, and read as zeros."""
    path = tmp_path / "disk"
    with open(path, "wb") as file:
        file.truncate(1 << 20)
        file.seek(300_000)
        file.write(b"x" * 5000)
    blocks = load(str(path))
    assert read(blocks, 0, 1 << 20) == path.read_bytes()
    assert len(blocks) <= 3


def test_only_known_pages_are_held_back_and_those_until_their_time() -> None:
    """Metadata goes through; a data write is answered, and on the disk, only when it is released."""
    disk, answers = live()
    disk.known, disk.held_for_s = frozenset({A}), 1000.0
    disk.write(1, 0, A)
    disk.write(2, 4096, B)
    disk.flush()
    assert answers == [(2, 4096, 0)]
    assert read(disk.blocks, 0, 4096) == bytes(4096)
    assert disk.entries[0] == Write(0, A, NEVER)
    assert disk.release(0.0) is not None
    assert disk.release() is None
    assert answers == [(2, 4096, 0), (1, 4096, 0)]
    assert disk.entries == [Write(0, A, 3), Write(4096, B, 2), Flush()]
    assert read(disk.blocks, 0, 4096) == A


def test_a_failing_disk_refuses_data_and_keeps_the_old_bytes() -> None:
    """EIO for a known page, nothing written; another write succeeds."""
    disk, answers = live()
    disk.known, disk.failing = frozenset({A}), True
    disk.write(1, 0, A)
    disk.write(2, 0, B)
    assert answers == [(1, 0, errno.EIO), (2, 4096, 0)]
    assert read(disk.blocks, 0, 4096) == B


def test_an_image_is_the_floor_and_its_pieces_and_writing_to_it_changes_nothing_else() -> None:
    """What a mount of an image writes is gone with the next image."""
    disk, _ = live()
    write(disk.blocks, 8192, B)
    disk.begin()
    disk.write(1, 0, A)
    disk.flush()
    disk.write(2, 4096, A)
    shown = Shown()
    found = []
    log = DiskLog(disk.run, tuple(disk.entries))
    for image in images(log, 3, seed=1, count=9):
        shown.show(disk, image.floor, image.pieces)
        found.append(read(shown.blocks, 0, 12_288))
        write(shown.blocks, 0, B * 3)
    assert found == [A + bytes(4096) + B, A + A + B]
    assert read(disk.blocks, 0, 12_288) == A + A + B
