"""What the applications here share: one way to replace a file that holds, and ways that do not."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path


def sync(path: Path) -> None:
    """Force what the directory ``path`` says to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def put(path: Path, value: Any) -> None:
    """Replace the JSON file ``path`` whole: its bytes are on the disk before its name leads to them."""
    put_bytes(path, json.dumps(value).encode())


def put_bytes(path: Path, data: bytes) -> None:
    """The same for bytes.

    A draft that was left over goes first, and the new one must not be there: on btrfs a power loss during a
    rename may leave both names, and whoever opens the old one anew empties the file that was saved.
    """
    draft = path.with_suffix(".draft")
    draft.unlink(missing_ok=True)
    with draft.open("xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
    sync(path.parent)


def put_unsynced(path: Path, value: Any) -> None:
    """Wrong: renamed, and never forced to the disk."""
    draft = path.with_suffix(".draft")
    draft.write_text(json.dumps(value))
    draft.replace(path)


def put_in_place(path: Path, value: Any) -> None:
    """Wrong: the old value is gone before the new one is there."""
    path.write_text(json.dumps(value))


def take(path: Path) -> Any:
    """What the JSON file holds, None where there is none."""
    return json.loads(path.read_text()) if path.exists() else None
