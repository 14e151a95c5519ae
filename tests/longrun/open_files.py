"""Which files of a folder this process holds open."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def open_below(folder: Path) -> list[str]:
    """The paths of all in ``folder`` that a descriptor of this process leads to, and the folder itself.

    How many descriptors there are is no measure: other tests of this process leave some, which may close meanwhile.
    """
    held = {identity(int(name)) for name in os.listdir("/dev/fd")} - {None}
    found = [str(folder), *(str(path) for path in folder.rglob("*"))]
    return sorted(path for path in found if identity(path) in held)


def identity(of: int | str) -> tuple[int, int] | None:
    """Device and number of a file, or None where it is no more."""
    try:
        told = os.stat(of)
    except OSError:
        return None
    return told.st_dev, told.st_ino
