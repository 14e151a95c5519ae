"""Saving done right, for the parts of a scenario that are not its fault: whole files, lines at the end of a log."""

from __future__ import annotations

import contextlib
import json
import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path


def sync(path: Path) -> None:
    """Force a file, or the names in a directory."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_all(descriptor: int, data: bytes) -> None:
    """Every byte: one call may take fewer."""
    while data:
        data = data[os.write(descriptor, data) :]


def replace_text(path: Path, text: str) -> None:
    """Put ``text`` in the place of what ``path`` held: old or new, never a mix; an error leaves the old."""
    draft = path.with_name(path.name + ".tmp")
    with contextlib.suppress(FileNotFoundError):
        draft.unlink()  # after a power loss it may be another name of the good file
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        try:
            write_all(descriptor, text.encode())
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        draft.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            draft.unlink()
        raise
    sync(path.parent)


def replace_json(path: Path, value: Any) -> None:
    """:func:`replace_text` of a value."""
    replace_text(path, json.dumps(value))


def read_json(path: Path) -> Any:
    """The value, or None where there is no such file. Raises ValueError for one that is not whole."""
    try:
        return json.loads(path.read_text())
    except FileNotFoundError:
        return None


def whole(path: Path) -> bytes:
    """The lines of a log that have an end."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return b""
    return data[: data.rfind(b"\n") + 1]


def read_lines(path: Path) -> list[Any]:
    """The records of a log; a last line without an end was never promised."""
    return [json.loads(line) for line in whole(path).splitlines()]


def append_lines(path: Path, records: list[Any]) -> None:
    """Add records behind the last whole line, all in one write; an error leaves the log as it was."""
    new, end = not path.exists(), len(whole(path))
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        os.ftruncate(descriptor, end)
        os.lseek(descriptor, end, os.SEEK_SET)
        write_all(descriptor, b"".join(json.dumps(record).encode() + b"\n" for record in records))
        os.fsync(descriptor)
    except OSError:
        with contextlib.suppress(OSError):
            os.ftruncate(descriptor, end)
        raise
    finally:
        os.close(descriptor)
    if new:
        sync(path.parent)
