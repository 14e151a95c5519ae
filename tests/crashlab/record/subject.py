"""A subject in a file of its own, so that its ops can name lines of it."""

from __future__ import annotations

import shutil
from pathlib import Path


def save(folder: str) -> None:
    """Write by way of the standard library: lines 12 to 14."""
    Path(folder, "one").write_text("one", encoding="ascii")
    with Path(folder, "two").open("w", encoding="ascii") as file:
        file.write("two")
    shutil.copyfile(f"{folder}/one", f"{folder}/three")
