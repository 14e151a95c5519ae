"""A program that keeps one number and a text, in one of many ways: ``counter.py STORE write|load DIR``.

``write`` saves 1, 2 and 3, each with a text of its own length, and acks each. ``load`` prints the number that is
there, 0 for none, and fails where what it finds is no saved value.
"""

from __future__ import annotations

import dbm.dumb
import json
import os
import pickle
import shelve
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import lmdb
from atomicwrites import atomic_write
from tinydb import TinyDB

TEXTS = {0: "", 1: "a" * 300, 2: "b" * 9_000, 3: "c" * 4_000}


class Plain:
    """Overwrites a pickle in place."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / "state.pickle"

    def save(self, number: int, text: str) -> None:
        with open(self.path, "wb") as file:
            pickle.dump((number, text), file)

    def load(self) -> tuple[int, str]:
        if not self.path.exists():
            return 0, ""
        with open(self.path, "rb") as file:
            return pickle.load(file)


class Sqlite:
    """One row; the journal mode and the synchronous level are parts of its name."""

    def __init__(self, directory: Path, journal: str, synchronous: str) -> None:
        self.path = directory / "state.db"
        self.journal, self.synchronous = journal, synchronous

    def _open(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, isolation_level=None)
        connection.execute(f"PRAGMA journal_mode={self.journal}")
        connection.execute(f"PRAGMA synchronous={self.synchronous}")
        return connection

    def save(self, number: int, text: str) -> None:
        with closing(self._open()) as connection:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("CREATE TABLE IF NOT EXISTS state (id INTEGER PRIMARY KEY, number INTEGER, text TEXT)")
            connection.execute("INSERT OR REPLACE INTO state VALUES (1, ?, ?)", (number, text))
            connection.execute("COMMIT")

    def load(self) -> tuple[int, str]:
        if not self.path.exists():
            return 0, ""
        with closing(self._open()) as connection:
            if connection.execute("PRAGMA integrity_check").fetchone() != ("ok",):
                sys.exit("the database is damaged")
            if not connection.execute("SELECT name FROM sqlite_master WHERE name='state'").fetchone():
                return 0, ""
            return connection.execute("SELECT number, text FROM state").fetchone() or (0, "")


class Dbm:
    """``dbm.dumb`` of the standard library."""

    def __init__(self, directory: Path) -> None:
        self.path = str(directory / "state")

    def save(self, number: int, text: str) -> None:
        with dbm.dumb.open(self.path, "c") as database:
            database["state"] = json.dumps([number, text])

    def load(self) -> tuple[int, str]:
        if not os.path.exists(self.path + ".dir"):
            return 0, ""
        with dbm.dumb.open(self.path, "r") as database:
            return tuple(json.loads(database["state"])) if b"state" in database else (0, "")


class Shelf:
    """``shelve`` of the standard library, over ``dbm.dumb``."""

    def __init__(self, directory: Path) -> None:
        self.path = str(directory / "state")

    def _open(self, flag: str) -> shelve.Shelf[Any]:
        return shelve.Shelf(dbm.dumb.open(self.path, flag))

    def save(self, number: int, text: str) -> None:
        with self._open("c") as shelf:
            shelf["state"] = number, text

    def load(self) -> tuple[int, str]:
        if not os.path.exists(self.path + ".dir"):
            return 0, ""
        with self._open("r") as shelf:
            return shelf.get("state", (0, ""))


class Tiny:
    """TinyDB with its JSON storage."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / "state.json"

    def save(self, number: int, text: str) -> None:
        with TinyDB(self.path) as database:
            database.truncate()
            database.insert({"number": number, "text": text})

    def load(self) -> tuple[int, str]:
        if not self.path.exists():
            return 0, ""
        with TinyDB(self.path) as database:
            found = database.all()
        return (found[0]["number"], found[0]["text"]) if found else (0, "")


class Lmdb:
    """LMDB as it comes."""

    def __init__(self, directory: Path) -> None:
        self.path = directory

    def _open(self) -> lmdb.Environment:
        return lmdb.open(str(self.path), map_size=1 << 20)

    def save(self, number: int, text: str) -> None:
        with self._open() as environment, environment.begin(write=True) as transaction:
            transaction.put(b"state", json.dumps([number, text]).encode())

    def load(self) -> tuple[int, str]:
        if not (self.path / "data.mdb").exists():
            return 0, ""
        with self._open() as environment, environment.begin() as transaction:
            data = transaction.get(b"state")
        return tuple(json.loads(data)) if data else (0, "")


class Atomic:
    """The package ``atomicwrites``."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / "state.json"

    def save(self, number: int, text: str) -> None:
        with atomic_write(str(self.path), overwrite=True) as file:
            json.dump([number, text], file)

    def load(self) -> tuple[int, str]:
        return tuple(json.loads(self.path.read_text())) if self.path.exists() else (0, "")


STORES: dict[str, Any] = {
    "pickle": Plain,
    "sqlite-off": lambda directory: Sqlite(directory, "DELETE", "OFF"),
    "sqlite-full": lambda directory: Sqlite(directory, "DELETE", "FULL"),
    "sqlite-extra": lambda directory: Sqlite(directory, "DELETE", "EXTRA"),
    "sqlite-wal": lambda directory: Sqlite(directory, "WAL", "FULL"),
    "dbm": Dbm,
    "shelve": Shelf,
    "tinydb": Tiny,
    "lmdb": Lmdb,
    "atomicwrites": Atomic,
}


def main() -> None:
    name, action, directory = sys.argv[1:]
    store = STORES[name](Path(directory))
    if action == "write":
        for number in (1, 2, 3):
            store.save(number, TEXTS[number])
            with open(os.environ["CRASHLAB_EVENTS"], "a", encoding="utf-8") as events:
                events.write(f"ack {number}\n")
        return
    number, text = store.load()
    if TEXTS[number] != text:
        sys.exit(f"{number} was saved with another text")
    print(number)


if __name__ == "__main__":
    main()
