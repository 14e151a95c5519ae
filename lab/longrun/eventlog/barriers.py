"""The one system call that makes the bytes of a file durable, by a name that a naive log can exchange."""

from __future__ import annotations

import os


def sync_data(descriptor: int) -> None:
    """Make a file's bytes, and its length, durable."""
    os.fdatasync(descriptor)
