"""The files of a session: where they are, what they are called, and how a new one comes into being.

A new file is written under another name, synced, and given its name by ``link``, which overwrites nothing; then the
directory is synced. So it is there whole or not at all, and nobody's file is lost. A sealed segment never changes.
"""

from __future__ import annotations

import contextlib
import os
import re
from typing import TYPE_CHECKING
from urllib.parse import quote

from longrun.files import TEMPORARY_SUFFIX, sync_directory, temporary_name, write_new

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MARK_NAME, LEASE_NAME = "mark", "lease"
MAX_BYTES, MAX_RECORDS = 8 * 1024 * 1024, 10_000
"""Of one segment; it is sealed at the end of the turn in which it grows beyond either."""
_DIGITS = 6
_SEGMENT = re.compile(r"seg-(\d{6,})\.jsonl")
_SNAPSHOT = re.compile(r"snap-(\d+)\.json")


def session_directory(root: Path, session_id: str) -> Path:
    """Where a session lives; any id is a name of one level.

    >>> from pathlib import Path
    >>> session_directory(Path("root"), "../etc/é").as_posix(), session_directory(Path("root"), "..").as_posix()
    ('root/..%2Fetc%2F%C3%A9', 'root/%2E%2E')
    """
    name = quote(session_id, safe="")
    return root / (name.replace(".", "%2E") if not name.strip(".") else name)


def segment_path(directory: Path, number: int) -> Path:
    """The file of a segment. Readers take any number of digits from six on, so segment 1,000,000 is read too."""
    return directory / f"seg-{number:0{_DIGITS}d}.jsonl"


def segment_numbers(directory: Path) -> list[int]:
    """The segments that are there, in order; their numbers may have a gap."""
    return sorted(int(found[1]) for name in os.listdir(directory) if (found := _SEGMENT.fullmatch(name)))


def snapshot_path(directory: Path, seq: int) -> Path:
    """The file of the snapshot right behind record ``seq``."""
    return directory / f"snap-{seq}.json"


def snapshot_numbers(directory: Path) -> list[int]:
    """The snapshots that are there, the newest first."""
    found = (_SNAPSHOT.fullmatch(name) for name in os.listdir(directory))
    return sorted((int(each[1]) for each in found if each), reverse=True)


def publish(path: Path, data: bytes, *, sync: Callable[[int], None] = os.fsync) -> None:
    """Make a new file with ``data`` appear at once, durably. Raises FileExistsError where the name is taken."""
    temporary = temporary_name(path)
    try:
        write_new(temporary, data, sync=False)
        descriptor = os.open(temporary, os.O_RDONLY | os.O_CLOEXEC)
        try:
            sync(descriptor)
        finally:
            os.close(descriptor)
        os.link(temporary, path)
    finally:
        with contextlib.suppress(OSError):  # who opens the session next removes it
            os.unlink(temporary)
    sync_directory(path.parent)


def keep_torn(directory: Path, seq: int, data: bytes) -> Path:
    """Copy what is about to be cut off into a file of its own, durably; the same bytes are copied once."""
    number, name = 0, f"torn-{seq}.bin"
    while (path := directory / name).exists():
        if path.read_bytes() == data:
            sync_directory(directory)
            return path
        number += 1
        name = f"torn-{seq}-{number}.bin"
    publish(path, data)
    return path


def clear(directory: Path) -> None:
    """Remove the temporary files that a killed process has left. Only who holds the lease may."""
    for name in os.listdir(directory):
        if name.endswith(TEMPORARY_SUFFIX):
            os.unlink(directory / name)
