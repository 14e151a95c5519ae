"""Subjects that live from the memory of their process, each with a fault that only a new process shows."""

from __future__ import annotations

import functools
import json
import zlib
from typing import TYPE_CHECKING, Any

import pytest

from crashlab import Store, Subject
from tests.quality.stores import load_strict, save_atomic, save_in_place

if TYPE_CHECKING:
    from pathlib import Path

_memory: dict[str, Any] = {}


def resume_from_memory(lab: Any) -> str:
    """Wrong: consumes its file and goes on from memory, which the next process has not."""
    path = lab.dir / "state"
    if path.exists():
        _memory["state"] = path.read_text()
        path.unlink()
    return str(_memory.get("state", '"kept"' if not (lab.dir / "other").exists() else "lost"))


def run_many_steps(lab: Any) -> str:
    """Many saves, each whole, beside the one that matters."""
    save_atomic(lab.dir, "kept", "state")
    for n in range(10):
        save_atomic(lab.dir, n, "other")
    return '"kept"'


CONSUMES = Subject(
    run_many_steps, lambda lab: resume_from_memory(lab) if any(lab.dir.iterdir()) else run_many_steps(lab)
)


def work_once(lab: Any) -> int:
    """Wrong: its file may be half there; and a process that has once finished never looks at it again."""
    if "done" not in _memory:
        start = load_strict(lab.dir) or 0
        for n in range(start + 1, 31):
            (lab.dir / "value.json").write_text(json.dumps(n))
        _memory["done"] = 30
    return int(_memory["done"])


DONE_IN_MEMORY = Subject(work_once)


@functools.lru_cache
def load_cached(directory: Path) -> Any:
    """Wrong twice: the file may be half there, and it is read once in the life of a process."""
    return load_strict(directory)


def save_and_forget(directory: Path, value: Any) -> None:
    """In place, with the cache emptied."""
    save_in_place(directory, value)
    load_cached.cache_clear()


CACHED = Store(save_and_forget, load_cached)


class Keeper:
    """Wrong: one object for the life of a process, which reads its file only when it is new."""

    def __init__(self) -> None:
        self.state: Any = None

    def save(self, directory: Path, value: Any) -> None:
        """In memory, and in place."""
        self.state = value
        (directory / "state").write_text(json.dumps(value))

    def load(self, directory: Path) -> Any:
        """What is in memory, if anything is."""
        if self.state is None and (directory / "state").exists():
            self.state = json.loads((directory / "state").read_text())
        return self.state


_keeper = Keeper()


def save_in_keeper(directory: Path, value: Any) -> None:
    """By the one object of this process: bound methods would travel with a copy of it."""
    _keeper.save(directory, value)


def load_from_keeper(directory: Path) -> Any:
    """The same."""
    return _keeper.load(directory)


SINGLETON = Store(save_in_keeper, load_from_keeper)


def save_checked(directory: Path, value: Any) -> None:
    """Atomically, with a checksum."""
    text = json.dumps(value)
    save_atomic(directory, {"text": text, "sum": zlib.crc32(text.encode())}, "checked")


def load_or_go_on_refusing(directory: Path) -> Any:
    """Wrong: takes an empty file for nothing. A process that has once refused something refuses ever after."""
    if "refused" in _memory:
        raise ValueError(_memory["refused"])
    path = directory / "checked"
    if not path.exists() or not path.stat().st_size:
        return None
    try:
        form = json.loads(path.read_bytes())
        whole = isinstance(form, dict) and form.keys() == {"text", "sum"} and isinstance(form["text"], str)
        if not whole or form["sum"] != zlib.crc32(form["text"].encode()):
            raise ValueError(path.name)  # noqa: TRY301 - as a program would
    except ValueError as error:
        _memory["refused"] = str(error)
        raise
    return json.loads(form["text"])


GOES_ON_REFUSING = Store(save_checked, load_or_go_on_refusing)


def load_or_remember(directory: Path) -> Any:
    """Wrong: takes an empty file for nothing, but not in a process that has read something before."""
    path = directory / "checked"
    if not path.exists() or not path.stat().st_size:
        if "read" in _memory:
            raise ValueError(path.name)
        return None
    form = json.loads(path.read_bytes())
    whole = isinstance(form, dict) and form.keys() == {"text", "sum"} and isinstance(form["text"], str)
    if not whole or form["sum"] != zlib.crc32(form["text"].encode()):
        raise ValueError(path.name)
    _memory["read"] = path.name
    return json.loads(form["text"])


KNOWS_THAT_THERE_WAS = Store(save_checked, load_or_remember)

LIVE_FROM_MEMORY = [
    pytest.param(CONSUMES, id="consumes"),
    pytest.param(DONE_IN_MEMORY, id="done-in-memory"),
    pytest.param(CACHED, id="cached"),
    pytest.param(SINGLETON, id="singleton"),
]
