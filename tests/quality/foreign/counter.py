"""A program that keeps one number and a text, in one of many ways: ``counter.py STORE write|load DIR``.

``write`` saves 1 and 2, each with a text of its own length, and acks each. ``load`` prints the number that is
there, 0 for none, and fails where what it finds is no saved value. It runs twice for every crash state, so a
store imports what it needs only when it is the one that is asked for, and nothing imports much.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import shelve
    import sqlite3
    from typing import Any

    import lmdb

TEXTS = {0: "", 1: "a" * 300, 2: "b" * 9_000}


class Plain:
    """Overwrites a pickle in place."""

    def __init__(self, directory: str) -> None:
        import pickle  # noqa: PLC0415 - this store only

        self.pickle, self.path = pickle, f"{directory}/state.pickle"

    def save(self, number: int, text: str) -> None:
        with open(self.path, "wb") as file:
            self.pickle.dump((number, text), file)

    def load(self) -> tuple[int, str]:
        if not os.path.exists(self.path):
            return 0, ""
        with open(self.path, "rb") as file:
            return self.pickle.load(file)


class Sqlite:
    """One row; the journal mode and the synchronous level are parts of its name."""

    def __init__(self, directory: str, journal: str, synchronous: str) -> None:
        self.path = f"{directory}/state.db"
        self.journal, self.synchronous = journal, synchronous

    def _open(self) -> sqlite3.Connection:
        import sqlite3  # noqa: PLC0415 - this store only

        connection = sqlite3.connect(self.path, isolation_level=None)
        connection.execute(f"PRAGMA journal_mode={self.journal}")
        connection.execute(f"PRAGMA synchronous={self.synchronous}")
        return connection

    def save(self, number: int, text: str) -> None:
        connection = self._open()
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("CREATE TABLE IF NOT EXISTS state (id INTEGER PRIMARY KEY, number INTEGER, text TEXT)")
        connection.execute("INSERT OR REPLACE INTO state VALUES (1, ?, ?)", (number, text))
        connection.execute("COMMIT")
        connection.close()

    def load(self) -> tuple[int, str]:
        if not os.path.exists(self.path):
            return 0, ""
        connection = self._open()
        if connection.execute("PRAGMA integrity_check").fetchone() != ("ok",):
            sys.exit("the database is damaged")
        if not connection.execute("SELECT name FROM sqlite_master WHERE name='state'").fetchone():
            return 0, ""
        return connection.execute("SELECT number, text FROM state").fetchone() or (0, "")


class Dbm:
    """``dbm.dumb`` of the standard library."""

    def __init__(self, directory: str) -> None:
        import dbm.dumb  # noqa: PLC0415 - this store only

        self.open, self.path = dbm.dumb.open, f"{directory}/state"

    def save(self, number: int, text: str) -> None:
        with self.open(self.path, "c") as database:
            database["state"] = f"{number} {text}"

    def load(self) -> tuple[int, str]:
        if not os.path.exists(self.path + ".dir"):
            return 0, ""
        with self.open(self.path, "r") as database:
            number, _, text = database.get(b"state", b"0 ").decode().partition(" ")
            return int(number), text


class Shelf:
    """``shelve`` of the standard library, over ``dbm.dumb``."""

    def __init__(self, directory: str) -> None:
        self.path = f"{directory}/state"

    def _open(self, flag: str) -> shelve.Shelf[Any]:
        import dbm.dumb  # noqa: PLC0415 - this store only
        import shelve  # noqa: PLC0415 - this store only

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

    def __init__(self, directory: str) -> None:
        import tinydb  # noqa: PLC0415 - this store only

        self.database, self.path = tinydb.TinyDB, f"{directory}/state.json"

    def save(self, number: int, text: str) -> None:
        with self.database(self.path) as database:
            database.truncate()
            database.insert({"number": number, "text": text})

    def load(self) -> tuple[int, str]:
        if not os.path.exists(self.path):
            return 0, ""
        with self.database(self.path) as database:
            found = database.all()
        return (found[0]["number"], found[0]["text"]) if found else (0, "")


class Lmdb:
    """LMDB as it comes. Where the environment is made ``aside``, it gets its name when all of it is on disk."""

    def __init__(self, directory: str, *, aside: bool) -> None:
        self.path = f"{directory}/state"
        if aside and sys.argv[2] == "write":
            self._made(f"{directory}/new").close()
            os.sync()
            os.rename(f"{directory}/new", self.path)
            os.sync()

    def _made(self, path: str) -> lmdb.Environment:
        import lmdb  # noqa: PLC0415 - this store only

        return lmdb.open(path, map_size=1 << 20)

    def _open(self) -> lmdb.Environment:
        return self._made(self.path)

    def save(self, number: int, text: str) -> None:
        with self._open() as environment, environment.begin(write=True) as transaction:
            transaction.put(b"state", f"{number} {text}".encode())

    def load(self) -> tuple[int, str]:
        if not os.path.exists(f"{self.path}/data.mdb"):
            return 0, ""
        with self._open() as environment, environment.begin() as transaction:
            number, _, text = transaction.get(b"state", b"0 ").decode().partition(" ")
        return int(number), text


class Atomic:
    """The package ``atomicwrites``."""

    def __init__(self, directory: str) -> None:
        self.path = f"{directory}/state.txt"

    def save(self, number: int, text: str) -> None:
        from atomicwrites import atomic_write  # noqa: PLC0415 - this store only

        with atomic_write(self.path, overwrite=True) as file:
            file.write(f"{number} {text}")

    def load(self) -> tuple[int, str]:
        if not os.path.exists(self.path):
            return 0, ""
        with open(self.path, encoding="utf-8") as file:
            number, _, text = file.read().partition(" ")
        return int(number), text


STORES: dict[str, Any] = {
    "pickle": Plain,
    "sqlite-off": lambda directory: Sqlite(directory, "DELETE", "OFF"),
    "sqlite-full": lambda directory: Sqlite(directory, "DELETE", "FULL"),
    "sqlite-extra": lambda directory: Sqlite(directory, "DELETE", "EXTRA"),
    "sqlite-wal": lambda directory: Sqlite(directory, "WAL", "FULL"),
    "dbm": Dbm,
    "shelve": Shelf,
    "tinydb": Tiny,
    "lmdb": lambda directory: Lmdb(directory, aside=True),
    "lmdb-new": lambda directory: Lmdb(directory, aside=False),
    "atomicwrites": Atomic,
}


def main() -> None:
    name, action, directory = sys.argv[1:]
    sys.path.extend(os.environ["PACKAGES"].split(os.pathsep))  # python -S, which starts faster, knows of none
    store = STORES[name](directory)
    if action == "write":
        for number in (1, 2):
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
