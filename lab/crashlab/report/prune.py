"""Which old runs go: all but the newest, and never one that somebody is still writing."""

from __future__ import annotations

import contextlib
import os
import re
from typing import TYPE_CHECKING

from crashlab import directory

if TYPE_CHECKING:
    from pathlib import Path

NEWEST_STAY = 20

_RUN = re.compile(r"\d{8}T\d{6}\.\d{6}Z-.*-(?P<pid>\d+)")
_DOOMED = "~removed-"


def prune(runs: Path, *, keep: str, newest: int = NEWEST_STAY) -> list[str]:
    """Remove all but the ``newest`` run folders below ``runs``; returns the names that went.

    Only folders whose name the lab gave are touched, links are never followed, ``keep`` stays, and so
    does a run of another user that may not be removed. Raises OSError where the disk fails.
    """
    names = sorted(entry.name for entry in os.scandir(runs) if entry.is_dir(follow_symlinks=False))
    ours = [name for name in names if _RUN.fullmatch(name)]
    removed = [name for name in ours[:-newest] if name != keep and not _being_written(runs / name)]
    for name in removed:
        _remove(runs, name)
    for name in names:
        if name.startswith(_DOOMED):  # left by a prune that was killed
            _empty(runs / name)
    return removed


def _being_written(run: Path) -> bool:
    """Whether the run has no report yet and the process that began it may still live."""
    match = _RUN.fullmatch(run.name)
    if match is None or (run / "report.json").exists():
        return False
    try:
        os.kill(int(match["pid"]), 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


def _remove(runs: Path, name: str) -> None:
    """Rename first: of two processes that prune at once one gets the folder, and nobody sees half of it."""
    doomed = runs / f"{_DOOMED}{name}"
    with contextlib.suppress(FileNotFoundError, PermissionError):
        os.rename(runs / name, doomed)
        _empty(doomed)


def _empty(folder: Path) -> None:
    with contextlib.suppress(FileNotFoundError, PermissionError):  # another process is at it, or owns it
        directory.clear(folder)
        os.rmdir(folder)
