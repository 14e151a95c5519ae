"""Durable file operations, in the order that a power loss respects.

A rename replaces a file whole, but is durable only once the directory is synced; data is durable
only once the file is synced. Sources: rename(2), fsync(2) and the kernel's documentation of ext4.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

TEMPORARY_SUFFIX = ".tmp"


def write_all(descriptor: int, data: bytes) -> None:
    """Write every byte: one call may take fewer."""
    written = os.write(descriptor, data)
    while written < len(data):
        written += os.write(descriptor, data[written:])


def write_new(path: str, *pieces: bytes, sync: bool) -> None:
    """Make the file ``path``, which must not be there yet, with ``pieces``; durable when this returns if ``sync``.

    One call takes them all, one behind the other, so that nobody need join them. Raises OSError; what was made until
    then stays.
    """
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
    try:
        written = os.writev(descriptor, pieces)
        if written < sum(map(len, pieces)):
            write_all(descriptor, b"".join(pieces)[written:])
        if sync:
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_file(path: Path) -> None:
    """Make the bytes of ``path`` durable, whoever wrote them."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_directory(directory: Path) -> None:
    """Make the names in ``directory`` durable."""
    descriptor = os.open(directory, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0))
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def temporary_name(path: Path) -> str:
    """A name beside ``path`` that nobody else uses; readers ignore it, the next opener removes it."""
    return f"{path}.{os.urandom(8).hex()}{TEMPORARY_SUFFIX}"


def remove_temporary(directory: Path) -> None:
    """Remove what a killed process left behind. Only the one opener of a directory may do this."""
    for name in os.listdir(directory):
        if name.endswith(TEMPORARY_SUFFIX):
            os.unlink(directory / name)
