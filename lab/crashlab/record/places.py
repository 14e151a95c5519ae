"""Where a call acts: real paths below the root, names relative to it, and the line of the subject that called.

A path is resolved through its real parent directory, so that symbolic links, ``..``, ``dir_fd`` and
a root that is itself a link all come out as one name. Not modelled: two names that differ only in
case on a file system that does not care.
"""

from __future__ import annotations

import errno
import fnmatch
import os
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from crashlab.record.patch import REAL

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import FrameType

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_LIBRARY = os.path.dirname(os.path.abspath(os.__file__))
_DELETED = " (deleted)"
_GET_PATH = 50 if sys.platform == "darwin" else None  # F_GETPATH of <fcntl.h>
_GET_PATH_BYTES = 1024
_NO_FILES = ("/dev/", "/proc/")


@dataclass(frozen=True, slots=True)
class Target:
    """What a path means: ``real`` on disk, ``path`` relative to the root, or None outside of it."""

    real: str
    path: str | None
    asked: str


class Places:
    """Turns the paths of one recording into :class:`Target` values."""

    def __init__(self, root: str, outside: Sequence[str]) -> None:
        self.root = os.path.realpath(root)
        self._below = self.root.rstrip(os.sep) + os.sep
        self._outside = [os.path.expanduser(pattern) for pattern in outside]
        self._directory = os.getcwd() + os.sep
        self._shown: dict[str, str | None] = {}

    def resolve(
        self, path: str | bytes | os.PathLike[str], dir_fd: int | None = None, *, follow: bool = False
    ) -> Target:
        """Where ``path`` leads. The last name is kept as it is, unless ``follow``."""
        text = os.fsdecode(path)
        if dir_fd is not None and not os.path.isabs(text):
            text = os.path.join(_known_path(dir_fd), text)
        asked = os.path.abspath(text)
        head, name = os.path.split(text.rstrip(os.sep) or os.sep)
        if follow or name in ("", os.curdir, os.pardir):
            real = os.path.realpath(text)
        else:
            real = os.path.join(os.path.realpath(head or os.curdir), name)
        return Target(real, self.relative(real), asked)

    def relative(self, real: str) -> str | None:
        """``real`` relative to the root, with ``/``; None outside of it."""
        if real.startswith(self._below):
            return real[len(self._below) :].replace(os.sep, "/")
        return "" if real == self.root else None

    def matters(self, target: Target) -> bool:
        """Whether a file written outside of the root is one that a recovery might miss."""
        if target.path is not None or target.real.startswith(_NO_FILES):
            return False
        parts = target.real.split(os.sep)
        if "__pycache__" in parts or (sys.pycache_prefix and target.real.startswith(sys.pycache_prefix)):
            return False
        names = (target.real, target.asked)
        return not any(fnmatch.fnmatch(name, pattern) for name in names for pattern in self._outside)

    def at(self) -> str:
        """``file.py:12`` of the nearest frame that is neither the lab nor the standard library, or ``""``."""
        frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - inspect.stack reads source files
        while frame is not None:
            name = frame.f_code.co_filename
            if name not in self._shown:
                self._shown[name] = self._show(name)
            shown = self._shown[name]
            if shown is not None:
                return f"{shown}:{frame.f_lineno}"
            frame = frame.f_back
        return ""

    def _show(self, name: str) -> str | None:
        if name.startswith((_PACKAGE + os.sep, "<frozen ")):
            return None
        if name.startswith(_LIBRARY + os.sep) and "-packages" + os.sep not in name[len(_LIBRARY) :]:
            return None
        if name.startswith(self._directory):
            return name[len(self._directory) :].replace(os.sep, "/")
        return os.path.basename(name)


def _known_path(descriptor: int) -> str:
    path = descriptor_path(descriptor)
    if not path:
        raise FileNotFoundError(errno.ENOENT, "the directory of a descriptor has no path any more")
    return path


def descriptor_path(descriptor: int) -> str:
    """The path by which an open descriptor can be reached now; ``""`` where the system does not tell.

    Linux: ``/proc/self/fd``, see proc(5); macOS: ``F_GETPATH``, see fcntl(2).
    """
    if _GET_PATH is not None:
        return os.fsdecode(REAL.fcntl(descriptor, _GET_PATH, bytes(_GET_PATH_BYTES)).rstrip(b"\0"))
    try:
        path = os.readlink(f"/proc/self/fd/{descriptor}")
    except OSError:
        return ""
    return path if not path.endswith(_DELETED) or os.path.lexists(path) else ""
