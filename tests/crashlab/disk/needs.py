"""What the tests of real disks share: skipping where one cannot be made, and what must not be left."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from crashlab.disk.available import missing
from crashlab.disk.sweep import PREFIX, loops, mounts


def needs(kind: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(bool(missing(kind)), reason=missing(kind) or "works here")


def kinds(*wanted: str) -> list:
    return [pytest.param(kind, marks=needs(kind)) for kind in wanted]


def left_of(pid: int) -> list[str]:
    """Mounts, loop devices and folders that belong to disks of a process."""
    folders = [str(path) for path in Path(tempfile.gettempdir()).glob(f"{PREFIX}{pid}-*")]
    return [text for text in (*mounts(), *loops().values(), *folders) if f"{PREFIX}{pid}-" in text]
