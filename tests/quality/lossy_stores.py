"""Small stores and logs that a power loss breaks, each by one missing barrier, beside correct ones.

A kill leaves most of them alone: what a process has written stays in memory after its death. Every
function that is wrong says what it lacks.
"""

from __future__ import annotations

import json
import os
import shutil
from typing import TYPE_CHECKING, Any

from atomicwrites import atomic_write

from crashlab import Log, Store
from tests.quality.stores import append_repaired, load_strict, read_whole_lines, save_atomic

if TYPE_CHECKING:
    from pathlib import Path

VALUES = [{"n": 1, "text": "x" * 5000}, {"n": 2, "text": "y" * 9000}]
BATCHES = [[{"seq": 0}], [{"seq": 1}, {"seq": 2}]]


def sync(path: Path) -> None:
    """Force a file or a directory."""
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)


def save(directory: Path, value: Any, *steps: str) -> None:
    """A file of its own, renamed over the old one; ``steps`` are the barriers: all three are right."""
    temporary, path = directory / "value.tmp", directory / "value.json"
    temporary.write_text(json.dumps(value))
    if "file" in steps:
        sync(temporary)
    temporary.rename(path)
    if "renamed" in steps:
        sync(path)
    if "directory" in steps:
        sync(directory)


def save_durably(directory: Path, value: Any) -> None:
    """Right: the bytes before the name, the name before the return."""
    save(directory, value, "file", "directory")


def save_in_place(directory: Path, value: Any) -> None:
    """Wrong: overwrites the good bytes; the fsync at the end comes too late for them."""
    path = directory / "value.json"
    with path.open("r+" if path.exists() else "w") as file:
        file.write(json.dumps(value).ljust(20_000))
        file.flush()
        os.fsync(file.fileno())
    sync(directory)


def save_without_fsync(directory: Path, value: Any) -> None:
    """Wrong: the name may be there before the bytes."""
    save(directory, value, "directory")


def save_without_dirsync(directory: Path, value: Any) -> None:
    """Wrong: the new name may not be there when save has returned."""
    save(directory, value, "file")


def save_with_fsync_after_rename(directory: Path, value: Any) -> None:
    """Wrong: between rename and fsync the new name may lead to nothing."""
    save(directory, value, "renamed", "directory")


def save_with_fsync_of_the_wrong_file(directory: Path, value: Any) -> None:
    """Wrong: the file that is forced is the old one."""
    temporary, path = directory / "value.tmp", directory / "value.json"
    temporary.write_text(json.dumps(value))
    if path.exists():
        sync(path)
    temporary.rename(path)
    sync(directory)


def append_unsynced(directory: Path, events: list[Any]) -> None:
    """Wrong: returns before the events are on the disk."""
    with (directory / "log.jsonl").open("a") as file:
        file.write("".join(json.dumps(event) + "\n" for event in events))


def append_durably(directory: Path, events: list[Any]) -> None:
    """Right: cuts a torn tail off, forces what it appends, and the name of a new log."""
    new = not (directory / "log.jsonl").exists()
    append_repaired(directory, events)
    if new:
        sync(directory)


def save_with_marker(directory: Path, value: Any) -> None:
    """Wrong: nothing stands between the data and the marker that says they are whole."""
    number = len(list(directory.glob("*.done")))
    (directory / f"{number}.json").write_text(json.dumps(value))
    (directory / f"{number}.done").write_text("")
    sync(directory)


def load_marked(directory: Path) -> Any:
    """The newest whose marker is there."""
    marked = sorted(directory.glob("*.done"))
    return load_strict(directory, f"{marked[-1].stem}.json") if marked else None


def save_in_two_files(directory: Path, value: Any) -> None:
    """Wrong: number and text are one fact, and each file is forced alone."""
    for name in ("n", "text"):
        save_atomic(directory, value[name], f"{name}.json")


def load_from_two_files(directory: Path) -> Any:
    """The two together."""
    if not (directory / "text.json").exists():
        return None
    return {"n": load_strict(directory, "n.json"), "text": load_strict(directory, "text.json")}


def save_as_directory(directory: Path, value: Any) -> None:
    """Wrong: the file is forced, neither the directory that holds it nor the one that names that directory."""
    draft, old, new = directory / "draft", directory / "old", directory / "current"
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir()
    (draft / "value.json").write_text(json.dumps(value))
    sync(draft / "value.json")
    if new.exists():
        shutil.rmtree(old, ignore_errors=True)
        new.rename(old)
    draft.rename(new)
    shutil.rmtree(old, ignore_errors=True)


def load_from_directory(directory: Path) -> Any:
    """The current one, or the old one where a save was interrupted."""
    for name in ("current", "old"):
        if (directory / name / "value.json").exists():
            return load_strict(directory / name)
    return None


def save_by_atomicwrites(directory: Path, value: Any) -> None:
    """Right, and not our own: a temporary file, fsync, rename, fsync of the directory."""
    with atomic_write(directory / "value.json", overwrite=True) as file:
        json.dump(value, file)


FOUND: dict[str, tuple[Store | Log, set[str]]] = {
    "overwrites in place": (Store(save_in_place, load_strict, values=VALUES), {"torn", "lost"}),
    "append without fsync": (Log(append_unsynced, read_whole_lines, values=BATCHES), {"lost"}),
    "data, then a marker": (Store(save_with_marker, load_marked, values=VALUES), {"lost"}),
    "two files for one fact": (Store(save_in_two_files, load_from_two_files, values=VALUES), {"torn"}),
    "a directory renamed without its fsync": (Store(save_as_directory, load_from_directory, values=VALUES), {"lost"}),
    "rename without fsync": (Store(save_without_fsync, load_strict, values=VALUES), {"lost", "stuck"}),
    "rename without directory fsync": (Store(save_without_dirsync, load_strict, values=VALUES), {"lost"}),
    "fsync of the wrong file": (Store(save_with_fsync_of_the_wrong_file, load_strict, values=VALUES), {"lost"}),
    "fsync after the rename": (Store(save_with_fsync_after_rename, load_strict, values=VALUES), {"lost"}),
}
"""By what is wrong, with the kinds that must be among the findings."""

KILLED: tuple[str, ...] = ("overwrites in place", "two files for one fact")
"""What a kill breaks too; all others are right but for the power."""

CLEAN: dict[str, Store | Log] = {
    "file, rename, directory": Store(save_durably, load_strict, values=VALUES),
    "a log that knows torn tails": Log(append_durably, read_whole_lines, values=BATCHES),
    "atomicwrites": Store(save_by_atomicwrites, load_strict, values=VALUES),
}
"""Correct ones: negative controls."""
