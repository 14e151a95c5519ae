"""A crawler's bookmark: where to go on. Functions and classes as a team has them, knowing nothing of crashlab."""

from __future__ import annotations

import asyncio
import hashlib
import json
import sqlite3
from typing import TYPE_CHECKING, Any

from tests.use_cases.files import put, put_bytes, put_in_place, sync, take

if TYPE_CHECKING:
    from pathlib import Path


class Shelf:
    """A store with coroutines that moves its file work to a thread."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "shelf.json"
        self.is_open = True

    async def put(self, bookmark: Any) -> None:
        assert self.is_open
        await asyncio.to_thread(put, self.file, bookmark)

    async def put_in_place(self, bookmark: Any) -> None:
        """Wrong, in the way of :func:`put_in_place`."""
        await asyncio.to_thread(put_in_place, self.file, bookmark)

    async def get(self) -> Any:
        await asyncio.sleep(0)
        return take(self.file)

    async def close(self) -> None:
        self.is_open = False


def database(folder: Path, *, synchronous: str = "full") -> sqlite3.Connection:
    """A connection to the bookmarks, with a write-ahead log."""
    connection = sqlite3.connect(folder / "bookmarks.sqlite3")
    connection.execute("pragma journal_mode=wal")
    connection.execute(f"pragma synchronous={synchronous}")
    connection.execute("create table if not exists bookmark (reader text primary key, place text)")
    return connection


def insert(connection: sqlite3.Connection, bookmark: Any) -> None:
    """One transaction."""
    with connection:
        connection.execute("insert or replace into bookmark values ('me', ?)", (json.dumps(bookmark),))


def select(connection: sqlite3.Connection) -> Any:
    """The bookmark, None where there is none."""
    row = connection.execute("select place from bookmark where reader = 'me'").fetchone()
    return None if row is None else json.loads(row[0])


# --- a file that knows whether it is whole ---------------------------------------------------------------


def seal(path: Path, value: Any) -> None:
    """Like ``put``, with a hash of the text in the first line."""
    text = json.dumps(value).encode()
    put_bytes(path, hashlib.sha256(text).hexdigest().encode() + b"\n" + text)


def unseal(path: Path) -> Any:
    """Refuses what the hash does not vouch for."""
    if not path.exists():
        return None
    digest, _, text = path.read_bytes().partition(b"\n")
    if hashlib.sha256(text).hexdigest().encode() != digest:
        message = f"{path.name} is damaged; restore it from a backup"
        raise ValueError(message)
    return json.loads(text)


def unseal_clearing(path: Path) -> Any:
    """The same, but what is damaged is thrown away, and a note keeps the place closed."""
    note = path.with_suffix(".damaged")
    if note.exists():
        message = f"{path.name} was damaged and is gone; restore it from a backup"
        raise ValueError(message)
    try:
        return unseal(path)
    except ValueError:
        put(note, "thrown away")
        path.unlink()
        raise


# --- two files that must change together -------------------------------------------------------------------


def save_pair(folder: Path, value: Any) -> None:
    """Writes down what it is about to do, does it, strikes it out."""
    put(folder / "plan.json", value)
    put(folder / "left.json", value)
    put(folder / "right.json", value)
    (folder / "plan.json").unlink()
    sync(folder)


def load_pair(folder: Path) -> Any:
    """Finishes what was begun, in the same order."""
    plan = take(folder / "plan.json")
    if plan is not None:
        save_pair(folder, plan)
    return _both(folder)


def load_pair_hastily(folder: Path) -> Any:
    """Wrong: strikes the plan out before it is carried out, so a second crash finds nothing to finish."""
    plan = take(folder / "plan.json")
    if plan is not None:
        (folder / "plan.json").unlink()
        put(folder / "left.json", plan)
        put(folder / "right.json", plan)
    return _both(folder)


def _both(folder: Path) -> Any:
    left, right = take(folder / "left.json"), take(folder / "right.json")
    assert left == right, f"left and right differ: {left!r}, {right!r}"
    return left
