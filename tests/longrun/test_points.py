"""Tests of longrun.rewind.points: a file per save, never written over; the newest number is the head."""

from __future__ import annotations

import errno
import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from longrun.errors import Damaged, LostLease, UsageError
from longrun.messages import user
from longrun.protocol import CHECKPOINT_NAME, Checkpoint
from longrun.rewind import points

if TYPE_CHECKING:
    from pathlib import Path

FIRST = Checkpoint(run_id="r", task="t", messages=(user("t"),), seq=1)


def saved(directory: Path, *numbers: int) -> list[Checkpoint]:
    """Points of these numbers, saved one after the other."""
    made = [replace(FIRST, seq=seq, parent=seq - 1 or None) for seq in numbers]
    for point in made:
        points.save(directory, point)
    return made


def test_every_save_stays(tmp_path: Path) -> None:
    """Nothing first; then the newest is the head, and the others can be read."""
    assert points.load(tmp_path) is None
    made = saved(tmp_path, 1, 2, 3)
    assert points.load(tmp_path) == made[-1]
    assert [points.read_point(tmp_path, seq) for seq in (1, 2, 3)] == made
    assert sorted(os.listdir(tmp_path / points.POINTS_NAME)) == ["00000001.json", "00000002.json", "00000003.json"]


def test_numbers_are_numbers_and_no_text(tmp_path: Path) -> None:
    """A ninth digit comes after eight: as text it would come before."""
    made = saved(tmp_path, 99_999_998, 99_999_999, 100_000_000)
    assert points.numbers(tmp_path) == [point.seq for point in made]
    assert points.load(tmp_path) == made[-1]


def test_the_order_is_data_name_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder is durable before anything is in it; then write, sync, link, remove, sync the folder."""
    done = []

    def noted(name: str, real: Any) -> Any:
        def call(*given: Any) -> Any:
            where = os.readlink(f"/proc/self/fd/{given[0]}") if name == "fsync" else ""
            done.append(f"{name} {os.path.basename(where)}" if os.path.isdir(where) else name)
            return real(*given)

        return call

    for name in ("writev", "fsync", "link", "unlink"):
        monkeypatch.setattr(os, name, noted(name, getattr(os, name)))
    saved(tmp_path, 1)
    assert done == [f"fsync {tmp_path.name}", "writev", "fsync", "link", "unlink", "fsync points"]


def test_a_number_is_given_once(tmp_path: Path) -> None:
    """Of two writers that go on from one point the second is told, and what the first has saved stands."""
    saved(tmp_path, 1, 2)
    before = points.path_of(tmp_path, 2).read_bytes()
    with pytest.raises(LostLease, match="another writer has saved this point"):
        points.save(tmp_path, replace(FIRST, seq=2, task="another"))
    assert points.path_of(tmp_path, 2).read_bytes() == before
    assert len(os.listdir(tmp_path / points.POINTS_NAME)) == 2


@pytest.mark.parametrize("name", ["open", "writev", "fsync", "link", "unlink"])
def test_a_failed_save_can_be_done_again(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever call fails first, save raises, the old head loads, and the same save then works."""
    saved(tmp_path, 1)
    failed: list[str] = []
    real = getattr(os, name)

    def failing(*given: Any, **options: Any) -> Any:
        if not failed:
            failed.append(name)
            raise OSError(errno.EIO, "the disk is ill")
        return real(*given, **options)

    with monkeypatch.context() as patch:
        patch.setattr(os, name, failing)
        with pytest.raises(OSError, match="ill"):
            saved(tmp_path, 2)
    assert points.load(tmp_path) == FIRST
    (point,) = saved(tmp_path, 2)
    assert points.load(tmp_path) == point


def test_a_folder_whose_name_may_be_lost_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the sync behind its making fails, the next save makes and syncs it anew."""

    def failing(*_given: Any) -> None:
        raise OSError(errno.EIO, "the disk is ill")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", failing)
        with pytest.raises(OSError, match="ill"):
            saved(tmp_path, 1)
    assert os.listdir(tmp_path) == []


# --- what is refused -------------------------------------------------------------------------------


@pytest.mark.parametrize("damage", [b"", b"{", b"another"])
def test_a_damaged_head_is_refused_and_never_skipped(tmp_path: Path, damage: bytes) -> None:
    """Skipping it would go on from a point that does not know what was done after it."""
    saved(tmp_path, 1, 2)
    path = points.path_of(tmp_path, 2)
    path.write_bytes(damage)
    with pytest.raises(Damaged, match=r"00000002\.json"):
        points.load(tmp_path)
    assert path.read_bytes() == damage


def test_a_point_under_the_name_of_another_is_refused(tmp_path: Path) -> None:
    """A copy of point 1 is no point 3, whole as it is."""
    saved(tmp_path, 1, 2)
    points.path_of(tmp_path, 3).write_bytes(points.path_of(tmp_path, 1).read_bytes())
    with pytest.raises(Damaged, match="it holds point 1"):
        points.load(tmp_path)


def test_a_gap_is_refused(tmp_path: Path) -> None:
    """No writer leaves one; points from before the first one that is there are nobody's loss."""
    saved(tmp_path, 1, 2, 3, 4)
    points.path_of(tmp_path, 1).unlink()
    assert points.numbers(tmp_path) == [2, 3, 4]
    points.path_of(tmp_path, 3).unlink()
    with pytest.raises(Damaged, match="3 is missing before 4"):
        points.load(tmp_path)


@pytest.mark.parametrize(("name", "words"), [("000000002.json", "twice"), ("3.json", "another name")])
def test_a_number_has_one_name(tmp_path: Path, name: str, words: str) -> None:
    """Two files of one number, or a number written otherwise: which is the point, nobody can say."""
    saved(tmp_path, 1, 2)
    (tmp_path / points.POINTS_NAME / name).write_bytes(points.path_of(tmp_path, 2).read_bytes())
    with pytest.raises(Damaged, match=words):
        points.numbers(tmp_path)


def test_other_files_are_nobodys_points(tmp_path: Path) -> None:
    """Temporary files, whole or not, and what a person put there, are not read; the opener removes its own kind."""
    (point,) = saved(tmp_path, 1)
    folder = tmp_path / points.POINTS_NAME
    for name in ("00000002.json.0123.tmp", "00000007.json.tmp", "notes.txt"):
        (folder / name).write_bytes(b"{")
    assert points.load(tmp_path) == point
    points.clear(tmp_path)
    assert sorted(os.listdir(folder)) == ["00000001.json", "notes.txt"]


def test_what_is_not_there_is_told(tmp_path: Path) -> None:
    """A number without a point, a run that is kept in one file, a fork that was never finished."""
    with pytest.raises(UsageError, match="there is no point 7"):
        points.read_point(tmp_path, 7)
    (tmp_path / CHECKPOINT_NAME).touch()
    with pytest.raises(Damaged, match="kept in one file"):
        points.convert(tmp_path)
    with pytest.raises(Damaged, match="the fork was never finished"):
        points.load(tmp_path / points.FORKS_NAME / "other")


def test_a_load_and_a_save_open_one_point(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many there are: the others are names in a listing."""
    saved(tmp_path, *range(1, 40))
    opened: list[str] = []
    real = os.open

    def noted(path: Any, *given: Any, **options: Any) -> int:
        opened.append(os.path.basename(path))
        return real(path, *given, **options)

    monkeypatch.setattr(os, "open", noted)
    assert points.stored_epoch(tmp_path) == 1
    saved(tmp_path, 40)
    assert opened[0] == "00000039.json"
    assert opened[1].startswith("00000040.json.")
    assert opened[2:] == [points.POINTS_NAME]
