"""Tests of longrun.checkpoint.correct: the save that replaces a file whole, and its strict reader."""

from __future__ import annotations

import errno
import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from longrun.checkpoint.correct import load, save
from longrun.errors import Damaged
from longrun.messages import user
from longrun.protocol import CHECKPOINT_NAME, Checkpoint

if TYPE_CHECKING:
    from pathlib import Path

FIRST = Checkpoint(run_id="r", task="t", messages=(user("t"),), seq=1)
SECOND = replace(FIRST, seq=2, parent=1)


def test_what_was_saved_is_loaded(tmp_path: Path) -> None:
    """Nothing first, then the last save, and no other file."""
    assert load(tmp_path) is None
    for checkpoint in (FIRST, SECOND):
        save(tmp_path, checkpoint)
        assert load(tmp_path) == checkpoint
    assert os.listdir(tmp_path) == [CHECKPOINT_NAME]


def test_a_reader_does_not_see_temporary_files(tmp_path: Path) -> None:
    """What a killed save left beside the checkpoint is not read, whole or not."""
    (tmp_path / f"{CHECKPOINT_NAME}.0123.tmp").write_bytes(b"{")
    assert load(tmp_path) is None
    save(tmp_path, FIRST)
    assert load(tmp_path) == FIRST


def test_the_order_is_data_name_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write, sync the file, rename, sync the directory: in this order, and nothing after it."""
    done = []

    def noted(name: str, real: Any) -> Any:
        def call(*given: Any) -> Any:
            is_directory = name == "fsync" and os.path.isdir(f"/proc/self/fd/{given[0]}")
            done.append(f"{name} directory" if is_directory else name)
            return real(*given)

        return call

    for name in ("writev", "fsync", "rename"):
        monkeypatch.setattr(os, name, noted(name, getattr(os, name)))
    save(tmp_path, FIRST)
    assert done == ["writev", "fsync", "rename", "fsync directory"]


@pytest.mark.parametrize("name", ["open", "writev", "fsync", "rename"])
def test_a_failed_save_leaves_the_old_value(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever call fails, save raises, the old checkpoint loads, nothing is left over, and a retry works."""
    save(tmp_path, FIRST)

    def failing(*_given: Any, **_options: Any) -> Any:
        raise OSError(errno.EIO, "the disk is ill")

    with monkeypatch.context() as patch:
        patch.setattr(os, name, failing)
        with pytest.raises(OSError, match="ill"):
            save(tmp_path, SECOND)
    assert load(tmp_path) == FIRST
    assert os.listdir(tmp_path) == [CHECKPOINT_NAME]
    save(tmp_path, SECOND)
    assert load(tmp_path) == SECOND


def test_an_empty_file_is_damage_and_no_fresh_start(tmp_path: Path) -> None:
    """The commonest trace of a lost power supply is refused, by path, and left as it is."""
    (tmp_path / CHECKPOINT_NAME).touch()
    with pytest.raises(Damaged, match="0 bytes"):
        load(tmp_path)
    assert os.listdir(tmp_path) == [CHECKPOINT_NAME]
