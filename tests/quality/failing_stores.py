"""Stores, logs and programs with one fault each in what they do with an I/O error, beside correct twins.

The module has no dependency beyond the lab, so that it is imported in fresh processes by name or by value alike.
"""

from __future__ import annotations

import contextlib
import json
import os
from typing import TYPE_CHECKING, Any

from crashlab import Log, Store, Subject

if TYPE_CHECKING:
    from pathlib import Path

    from crashlab import Lab

VALUES = ({"n": 1}, {"n": 2, "text": "text " * 2000})


def write_all(descriptor: int, data: bytes) -> None:
    """Every byte: one call may take fewer."""
    while data:
        data = data[os.write(descriptor, data) :]


def sync_directory(directory: Path) -> None:
    """Make its names durable."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def save_right(directory: Path, value: Any) -> None:
    """A temporary file, synced, renamed; removed where anything fails."""
    temporary = directory / "value.tmp"
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        try:
            write_all(descriptor, json.dumps(value).encode())
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        temporary.rename(directory / "value.json")
    except OSError:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    sync_directory(directory)


def load_right(directory: Path) -> Any:
    """The value, or None where nothing was saved."""
    try:
        return json.loads((directory / "value.json").read_text())
    except FileNotFoundError:
        return None


RIGHT = Store(save_right, load_right, values=VALUES)


def save_and_swallow(directory: Path, value: Any) -> None:
    """Wrong: the caller never hears of the error."""
    with contextlib.suppress(OSError):
        save_right(directory, value)


SWALLOWS = Store(save_and_swallow, load_right, values=VALUES)


def save_and_retry(directory: Path, value: Any) -> None:
    """Wrong: an fsync that failed is called again, and its 0 is believed."""
    temporary = directory / "value.tmp"
    with temporary.open("wb") as file:
        file.write(json.dumps(value).encode())
        file.flush()
        try:
            os.fsync(file.fileno())
        except OSError:
            os.fsync(file.fileno())
    temporary.rename(directory / "value.json")
    sync_directory(directory)


RETRIES_FSYNC = Store(save_and_retry, load_right, values=VALUES)


def load_none_on_error(directory: Path) -> Any:
    """Wrong: a file that cannot be read is taken for none."""
    try:
        return json.loads((directory / "value.json").read_text())
    except OSError:
        return None


NONE_ON_ERROR = Store(save_right, load_none_on_error, values=VALUES)


def load_and_remove(directory: Path) -> Any:
    """Wrong: it raises, and yet it takes a file that cannot be read now for one that never can be."""
    try:
        return load_right(directory)
    except OSError:
        (directory / "value.json").unlink()
        raise


REMOVES_UNREAD = Store(save_right, load_and_remove, values=VALUES)


def save_short(directory: Path, value: Any) -> None:
    """Wrong: believes that one write takes everything."""
    temporary = directory / "value.tmp"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    try:
        os.write(descriptor, json.dumps(value).encode())
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    temporary.rename(directory / "value.json")
    sync_directory(directory)


IGNORES_SHORT = Store(save_short, load_right, values=VALUES)


def save_exclusive(directory: Path, value: Any) -> None:
    """Wrong: what a failed save leaves keeps the next one from starting."""
    temporary = directory / "value.tmp"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    try:
        write_all(descriptor, json.dumps(value).encode())
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    temporary.rename(directory / "value.json")
    sync_directory(directory)


LEAVES_TMP = Store(save_exclusive, load_right, values=VALUES)


def save_in_place(directory: Path, value: Any) -> None:
    """Wrong: the only copy is emptied before there is room for the new one."""
    with (directory / "value.json").open("wb") as file:
        file.write(json.dumps(value).encode())
        file.flush()
        os.fsync(file.fileno())
    sync_directory(directory)


IN_PLACE = Store(save_in_place, load_right, values=VALUES)


# --- logs ------------------------------------------------------------------------------------------


def whole_lines(directory: Path) -> tuple[list[Any], int]:
    """The events, and the length of the file up to the first line that is not whole: after it nothing was acked."""
    try:
        data = (directory / "log").read_bytes()
    except FileNotFoundError:
        return [], 0
    events, length = [], 0
    for line in data.splitlines(keepends=True):
        try:
            events.append(json.loads(line.decode("ascii")) if line.endswith(b"\n") else None)
        except ValueError:
            break
        if events[-1] is None:
            return events[:-1], length
        length += len(line)
    return events, length


def append_right(directory: Path, events: list[Any]) -> None:
    """All lines at once after the last whole one; where that fails the old length is restored."""
    end = whole_lines(directory)[1]
    descriptor = os.open(directory / "log", os.O_RDWR | os.O_CREAT, 0o644)
    try:
        os.ftruncate(descriptor, end)
        os.lseek(descriptor, end, os.SEEK_SET)
        write_all(descriptor, b"".join(json.dumps(event).encode() + b"\n" for event in events))
        os.fsync(descriptor)
    except OSError:
        with contextlib.suppress(OSError):
            os.ftruncate(descriptor, end)
        raise
    finally:
        os.close(descriptor)
    sync_directory(directory)


def load_glued(directory: Path) -> list[Any]:
    """The lines that have an end; one that is no event is an error."""
    path = directory / "log"
    data = path.read_text() if path.exists() else ""
    return [json.loads(line) for line in data[: data.rfind("\n") + 1].splitlines()]


def append_glued(directory: Path, events: list[Any]) -> None:
    """Wrong: the half line of a failed append stays, and the next one is glued to it."""
    descriptor = os.open(directory / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        write_all(descriptor, b"".join(json.dumps(event).encode() + b"\n" for event in events))
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    sync_directory(directory)


BATCHES = ([{"seq": 0}], [{"seq": 1, "text": "text " * 2000}, {"seq": 2}])
RIGHT_LOG = Log(append_right, lambda directory: whole_lines(directory)[0], values=BATCHES)
GLUED_LOG = Log(append_glued, load_glued, values=BATCHES)


# --- programs --------------------------------------------------------------------------------------


def _program(lab: Lab, save: Any, load: Any, key: str | None) -> int:
    done = int((load(lab.dir) or {"n": 0})["n"])
    for number in range(done, 3):
        lab.effect("pay", key=key and f"{key}-{number}", number=number)
        save(lab.dir, {"n": number + 1})
    return 3


PAYS_RIGHT = Subject(lambda lab: _program(lab, save_right, load_right, "order"))
PAYS_AND_SWALLOWS = Subject(lambda lab: _program(lab, save_and_swallow, load_right, None))
PAYS_UNREAD = Subject(lambda lab: _program(lab, save_right, load_none_on_error, None))
