"""Stores and logs that break on a path of saves and crashes, each by one piece that is missing, beside correct ones.

Every function that is wrong says so. Some break at the first crash already, some only at a second one.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from crashlab import Log, Store

if TYPE_CHECKING:
    from pathlib import Path

    from crashlab import Lab


def sync(path: Path) -> None:
    """Force a file or a directory."""
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)


def save(directory: Path, value: Any, *steps: str) -> None:
    """A file of its own, renamed over the old one; right with all ``steps``."""
    temporary = directory / "checkpoint.tmp"
    if "fresh" in steps:
        temporary.unlink(missing_ok=True)
    with temporary.open("x" if "fresh" in steps else "w") as file:
        json.dump(value, file)
    if "file" in steps:
        sync(temporary)
    temporary.rename(directory / "checkpoint.json")
    if "directory" in steps:
        sync(directory)


def load(directory: Path) -> Any:
    """The value, or None where nothing was saved."""
    path = directory / "checkpoint.json"
    return json.loads(path.read_text()) if path.exists() else None


def save_durably(directory: Path, value: Any) -> None:
    """Right."""
    save(directory, value, "fresh", "file", "directory")


def save_unsynced(directory: Path, value: Any) -> None:
    """Wrong: the name may be there before the bytes."""
    save(directory, value)


def save_through_leftover(directory: Path, value: Any) -> None:
    """Wrong: opens a temporary file that an earlier crash may have left as a second name of the good one."""
    save(directory, value, "file", "directory")


def save_in_place(directory: Path, value: Any) -> None:
    """Wrong: for a moment the file is neither old nor new."""
    (directory / "checkpoint.json").write_text(json.dumps(value))
    sync(directory / "checkpoint.json")
    sync(directory)


DURABLE = Store(save_durably, load)
UNSYNCED = Store(save_unsynced, load)
LEFTOVER = Store(save_through_leftover, load)
IN_PLACE = Store(save_in_place, load)


@dataclass
class Session:
    """A store that counts its unclean ends. ``limit``: after so many of them it begins anew."""

    directory: Path
    limit: int
    begun: bool = field(default=False)

    @property
    def marks(self) -> Path:
        """One byte for each session that saved and was not closed."""
        return self.directory / "unclean"

    def save(self, value: Any) -> None:
        """The first save of a session leaves a mark."""
        if not self.begun:
            with self.marks.open("a") as file:
                file.write(".")
            sync(self.marks)
            self.begun = True
        save_durably(self.directory, value)

    def load(self) -> Any:
        """Wrong where there is a limit: after so many unclean ends the value counts as the cause of them."""
        ends = self.marks.stat().st_size if self.marks.exists() else 0
        return None if self.limit and ends >= self.limit else load(self.directory)

    def close(self) -> None:
        """A clean end."""
        self.marks.unlink(missing_ok=True)


def open_forgiving(lab: Lab) -> Session:
    """Right: never gives up."""
    return Session(lab.dir, limit=0)


def open_impatient(lab: Lab) -> Session:
    """Wrong: begins anew at the second unclean end."""
    return Session(lab.dir, limit=2)


SECOND_CRASH = Store(Session.save, Session.load, open=open_impatient, close=Session.close)
EVERY_CRASH = Store(Session.save, Session.load, open=open_forgiving, close=Session.close)


def whole_lines(directory: Path) -> tuple[list[Any], int]:
    """The events of all whole lines up to the first that is none, and where these end."""
    path, events, end = directory / "events.jsonl", list[Any](), 0
    for line in path.read_bytes().splitlines(keepends=True) if path.exists() else ():
        try:
            events.append(json.loads(line) if line.endswith(b"\n") else json.loads(b"half"))
        except ValueError:
            break
        end += len(line)
    return events, end


def load_events(directory: Path) -> list[Any]:
    """All whole events."""
    return whole_lines(directory)[0]


def append_repaired(directory: Path, events: list[Any]) -> None:
    """Right: cuts a half line off before it appends."""
    _append(directory, events, at=whole_lines(directory)[1])


def append_glued(directory: Path, events: list[Any]) -> None:
    """Wrong: appends to a half line, and so spoils its own events."""
    path = directory / "events.jsonl"
    _append(directory, events, at=path.stat().st_size if path.exists() else 0)


def _append(directory: Path, events: list[Any], *, at: int) -> None:
    path = directory / "events.jsonl"
    with path.open("r+b" if path.exists() else "w+b") as file:
        file.truncate(at)
        file.seek(at)
        file.write(b"".join(json.dumps(event).encode() + b"\n" for event in events))
    sync(path)
    sync(directory)


REPAIRED = Log(append_repaired, load_events)
GLUED = Log(append_glued, load_events)
