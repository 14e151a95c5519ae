"""A new file holds every byte of its pieces, however few of them one call takes."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

from longrun import files

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

PIECES = (b"head", b"", b"a long middle", b"tail")
WHOLE = b"".join(PIECES)


@pytest.mark.parametrize("taken", range(len(WHOLE) + 1))
def test_what_one_call_leaves_the_next_ones_write(taken: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At every place where the first call may stop, also within a piece; then a byte at a time."""
    write = os.write

    def few(descriptor: int, pieces: Sequence[bytes]) -> int:
        return write(descriptor, b"".join(pieces)[:taken])

    with monkeypatch.context() as patch:
        patch.setattr(os, "writev", few)
        patch.setattr(os, "write", lambda descriptor, data: write(descriptor, data[:1]))
        files.write_new(str(tmp_path / "new"), *PIECES, sync=True)
    assert (tmp_path / "new").read_bytes() == WHOLE


def test_the_pieces_are_written_by_one_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """More calls would be more places at which a crash may cut the file."""
    calls: list[Any] = []
    writev = os.writev

    def noted(descriptor: int, pieces: Sequence[bytes]) -> int:
        calls.append(pieces)
        return writev(descriptor, pieces)

    monkeypatch.setattr(os, "writev", noted)
    monkeypatch.delattr(os, "write")
    files.write_new(str(tmp_path / "new"), *PIECES, sync=False)
    assert calls == [PIECES]
    assert (tmp_path / "new").read_bytes() == WHOLE


def test_a_file_that_is_there_is_not_written_over(tmp_path: Path) -> None:
    """It raises, and the old bytes stand."""
    (tmp_path / "new").write_bytes(b"old")
    with pytest.raises(FileExistsError):
        files.write_new(str(tmp_path / "new"), b"new", sync=False)
    assert (tmp_path / "new").read_bytes() == b"old"
