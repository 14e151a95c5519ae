"""Whether a real file system can be put on a disk of our own here, and what is missing if not."""

from __future__ import annotations

import os
import shutil
import sys
from functools import cache
from pathlib import Path

from crashlab.disk.kinds import KINDS, Kind, kind_of

__all__ = ["KINDS", "missing"]

_PACKAGES = {"ext4": "e2fsprogs", "xfs": "xfsprogs", "btrfs": "btrfs-progs"}
_CAP_SYS_ADMIN = 21


def missing(kind: str) -> str:
    """What keeps ``kind`` from working here, in one sentence; ``""`` if nothing does.

    Raises UsageError for a kind that does not exist.
    """
    return _missing(kind_of(kind))


@cache
def _missing(kind: Kind) -> str:
    if sys.platform != "linux":
        return f"disks of our own need Linux (FUSE and loop devices); this is {sys.platform}"
    if os.geteuid() != 0 or not _may_mount():
        return "mounting needs root with CAP_SYS_ADMIN; run as root (in a container: docker run --privileged)"
    for path, module in (("/dev/fuse", "fuse"), ("/dev/loop-control", "loop")):
        if not os.access(path, os.R_OK | os.W_OK):
            return (
                f"{path} cannot be opened; load the module with 'modprobe {module}', or give the container the device"
            )
    if shutil.which(kind.make[0]) is None:
        return f"{kind.make[0]} is not installed; install {_PACKAGES[kind.name]}"
    if kind.name not in _file_systems():
        return f"this kernel does not know {kind.name}; load it with 'modprobe {kind.name}'"
    return ""


def _may_mount() -> bool:
    status = Path("/proc/self/status").read_text()
    effective = next(line.split()[1] for line in status.splitlines() if line.startswith("CapEff:"))
    return bool(int(effective, 16) >> _CAP_SYS_ADMIN & 1)


def _file_systems() -> set[str]:
    return {line.split()[-1] for line in Path("/proc/filesystems").read_text().splitlines()}
