"""A journal of events, one JSON object a line behind a checksum of it, in several builds."""

from __future__ import annotations

import json
import os
import zlib
from typing import TYPE_CHECKING, Any

from tests.use_cases.files import sync

if TYPE_CHECKING:
    from pathlib import Path


def _lines(events: list[Any]) -> bytes:
    texts = [json.dumps(event).encode() for event in events]
    return b"".join(b"%08x %s\n" % (zlib.crc32(text), text) for text in texts)


def append(folder: Path, events: list[Any]) -> None:
    """Cuts off what a crash left of a line, appends, forces it out; the name too, where it is new."""
    path = folder / "journal.jsonl"
    new = not path.exists()
    with path.open("ab") as file:
        whole = _whole(path.read_bytes())
        if file.tell() > len(whole):
            file.truncate(len(whole))
        file.write(_lines(events))
        file.flush()
        os.fsync(file.fileno())
    if new:
        sync(folder)


def read(folder: Path) -> list[Any]:
    """Every line up to the first that is not whole; from there on nothing was acked."""
    path = folder / "journal.jsonl"
    return [json.loads(line[9:]) for line in _whole(path.read_bytes()).splitlines()] if path.exists() else []


def _whole(data: bytes) -> bytes:
    """The lines of which the checksums are right. A power loss may leave zeros in the midst of a line."""
    end = 0
    for line in data.splitlines(keepends=True):
        if line[:9] != b"%08x " % zlib.crc32(line[9:-1]) or line[-1:] != b"\n":
            break
        end += len(line)
    return data[:end]


def append_carelessly(folder: Path, events: list[Any]) -> None:
    """Wrong: the next event is glued to what a crash left of a line."""
    with (folder / "journal.jsonl").open("ab") as file:
        file.write(_lines(events))
        file.flush()
        os.fsync(file.fileno())
    sync(folder)


def append_unsynced(folder: Path, events: list[Any]) -> None:
    """Wrong: nothing is ever forced out."""
    path = folder / "journal.jsonl"
    with path.open("ab") as file:
        file.truncate(len(_whole(path.read_bytes())))
        file.write(_lines(events))


def read_strictly(folder: Path) -> list[Any]:
    """Wrong: half a line hides all the lines before it."""
    path = folder / "journal.jsonl"
    return [json.loads(line[9:]) for line in path.read_bytes().splitlines()] if path.exists() else []
