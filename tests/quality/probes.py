"""Probes: small stores that each do one thing by one call, beside what is right about them.

They go below what Python's file objects do: raw descriptors, a mapping, a child process, a C library.
"""

from __future__ import annotations

import json
import mmap
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from typing import TYPE_CHECKING, Any

from crashlab import Store

if TYPE_CHECKING:
    from pathlib import Path

VALUES = [{"n": 1, "text": "x" * 300}, {"n": 2, "text": "y" * 9000}]
MAPPED_BYTES = 3 * 4096


def _load(directory: Path) -> Any:
    path = directory / "value.json"
    return json.loads(path.read_bytes()) if path.exists() else None


def _write_in_two(directory: Path, value: Any) -> None:
    """Wrong: two writes into the emptied file."""
    data = json.dumps(value).encode()
    descriptor = os.open(directory / "value.json", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    os.write(descriptor, data[: len(data) // 2])
    os.write(descriptor, data[len(data) // 2 :])
    os.fsync(descriptor)
    os.close(descriptor)
    _sync(directory)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)


def _renamed(directory: Path, value: Any, *, synced: bool) -> None:
    """A temporary file that is renamed; wrong where nothing is ``synced``."""
    temporary = directory / "value.tmp"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    os.write(descriptor, json.dumps(value).encode())
    if synced:
        os.fdatasync(descriptor)
    os.close(descriptor)
    temporary.rename(directory / "value.json")
    if synced:
        _sync(directory)


def _rename_synced(directory: Path, value: Any) -> None:
    _renamed(directory, value, synced=True)


def _rename_only(directory: Path, value: Any) -> None:
    _renamed(directory, value, synced=False)


def _save_mapped(directory: Path, value: Any) -> None:
    """Wrong: three pages are stored to one after the other, in place."""
    path = directory / "value.json"
    new = not path.exists()
    with path.open("w+b" if new else "r+b") as file:
        if new:
            file.truncate(MAPPED_BYTES)
        with mmap.mmap(file.fileno(), MAPPED_BYTES) as pages:
            pages[:] = json.dumps(value).encode().ljust(MAPPED_BYTES)
            pages.flush()


def _in_child(code: str, directory: Path, value: Any) -> None:
    """Another process does it, as a worker or a command line tool would."""
    subprocess.run([sys.executable, "-S", "-E", "-c", code, str(directory), json.dumps(value)], check=True)


_BROKEN_CHILD = """
import os, sys
with open(sys.argv[1] + "/value.json", "w") as file: file.write(sys.argv[2])
"""
_CORRECT_CHILD = """
import os, sys
directory, value = sys.argv[1:]
with open(directory + "/value.tmp", "w") as file: file.write(value); file.flush(); os.fsync(file.fileno())
os.rename(directory + "/value.tmp", directory + "/value.json")
os.fsync(os.open(directory, os.O_RDONLY))
"""


def _save_by_broken_child(directory: Path, value: Any) -> None:
    _in_child(_BROKEN_CHILD, directory, value)


def _save_by_correct_child(directory: Path, value: Any) -> None:
    _in_child(_CORRECT_CHILD, directory, value)


def _database(directory: Path, synchronous: str) -> sqlite3.Connection:
    connection = sqlite3.connect(directory / "value.db", isolation_level=None)
    if synchronous:
        connection.execute(f"PRAGMA synchronous={synchronous}")
    return connection


def _save_in_database(directory: Path, value: Any, synchronous: str = "") -> None:
    with closing(_database(directory, synchronous)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("CREATE TABLE IF NOT EXISTS state (id INTEGER PRIMARY KEY, value TEXT)")
        connection.execute("INSERT OR REPLACE INTO state VALUES (1, ?)", (json.dumps(value),))
        connection.execute("COMMIT")


def _save_extra(directory: Path, value: Any) -> None:
    _save_in_database(directory, value, "EXTRA")


def _load_database(directory: Path) -> Any:
    """The value, or None where there is no row yet."""
    if not (directory / "value.db").exists():
        return None
    with closing(_database(directory, "")) as connection:
        if not connection.execute("SELECT name FROM sqlite_master WHERE name='state'").fetchone():
            return None
        found = connection.execute("SELECT value FROM state").fetchone()
        return json.loads(found[0]) if found else None


WRITE_IN_TWO = Store(_write_in_two, _load, values=VALUES, name="write in two")
MAPPED = Store(_save_mapped, _load, values=VALUES, name="mapped")
RENAME_SYNCED = Store(_rename_synced, _load, values=VALUES, name="rename synced")
RENAME_ONLY = Store(_rename_only, _load, values=VALUES, name="rename only")
BROKEN_CHILD = Store(_save_by_broken_child, _load, values=VALUES, name="broken child")
CORRECT_CHILD = Store(_save_by_correct_child, _load, values=VALUES, name="correct child")
DATABASE = Store(_save_in_database, _load_database, values=VALUES, name="database")
DATABASE_EXTRA = Store(_save_extra, _load_database, values=VALUES, name="database extra")
