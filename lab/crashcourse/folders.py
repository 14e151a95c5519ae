"""Temporary folders that are gone whatever ends this process, SIGKILL included.

A shell of one line outlives this process by a moment: it waits for the end of its input, which only this process holds
open, and removes the folder. It is started before the folder is made, so that there is no moment without it. Below a
warden nobody needs it: that process, and the command that started it, remove all at once.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

PREFIX = "crashcourse-"
_GUARD = 'read -r _; if [ -d "$1" ]; then chmod -R u+rwx "$1"; rm -rf -- "$1"; fi'
guarded = True
"""Whether folders have such a shell; a warden's judge has no need of it."""


@contextlib.contextmanager
def temporary() -> Iterator[str]:
    """A new folder of this user alone; it is removed at the end of the block, or of this process.

    >>> with temporary() as folder:
    ...     os.path.basename(folder).startswith(PREFIX)
    True
    """
    folder = os.path.join(tempfile.gettempdir(), f"{PREFIX}{os.urandom(8).hex()}")
    with _guard(folder) if guarded else contextlib.nullcontext():
        os.mkdir(folder, 0o700)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _guard(folder: str) -> Iterator[None]:
    with subprocess.Popen(
        ["/bin/sh", "-c", _GUARD, "sh", folder],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        start_new_session=True,  # what a terminal sends reaches this process, which ends in order
    ):
        yield
