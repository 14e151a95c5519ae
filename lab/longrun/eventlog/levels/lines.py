"""Lines of JSON without sums, as most agents keep them: appended and synced, half a last line cut off at opening.

A last line that cannot be read is taken for one that was never finished; one before it is damage. What can be read is
believed.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from longrun.errors import Damaged
from longrun.files import sync_directory, sync_file, write_all
from longrun.messages import canonical, parse_strict

if TYPE_CHECKING:
    from pathlib import Path


def append_line(path: Path, entry: Any) -> None:
    """One more line; durable when this returns."""
    is_new = not path.exists()
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        write_all(descriptor, canonical(entry).encode() + b"\n")
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    if is_new:
        sync_directory(path.parent)


def open_lines(path: Path) -> list[Any]:
    """The entries that are there, durable. Raises Damaged for a line that cannot be read, unless it is the last."""
    data = path.read_bytes() if path.exists() else b""
    entries, size = [], 0
    for line in data.splitlines(keepends=True):
        try:
            entries.append(parse_strict(line.decode("ascii")) if line.endswith(b"\n") else _refuse())
        except ValueError as error:
            if size + len(line) < len(data):
                raise Damaged(path, f"the line at byte {size} cannot be read ({error})") from error
            break
        size += len(line)
    if data:
        os.truncate(path, size)
        sync_file(path)
        sync_directory(path.parent)
    return entries


def _refuse() -> Any:
    text = "it has no end"
    raise ValueError(text)
