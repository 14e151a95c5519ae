"""``crashcourse watch``: check an exercise whenever its file is saved; r runs, h hints, l lists, q leaves.

The file is looked at every half second, by its time and size: this needs nothing of the system, and an editor that
replaces the file is seen as well as one that writes into it. It never goes on to another exercise by itself.
"""

from __future__ import annotations

import contextlib
import os
import select
import sys
import termios
import tty
from typing import TYPE_CHECKING

from crashlab.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

EVERY_S = 0.5
KEYS = "r run  h hint  l list  q quit"
_END = ("q", "\x03", "\x04")

Keys = "Callable[[float], str]"


def watch(file: Path, acts: Mapping[str, Callable[[], object]], key: Callable[[float], str]) -> None:
    """Do ``acts["r"]`` at each change of ``file``, and each act at its key, until q.

    ``key`` waits so many seconds for a key, and gives "" where none came.
    """
    seen = _mark(file)
    acts["r"]()
    while (pressed := key(EVERY_S)) not in _END:
        if pressed in acts:
            acts[pressed]()
        if pressed != "" or (now := _mark(file)) == seen:
            continue
        seen = now
        if now is not None:  # between the removal and the new name of an editor there is nothing to check
            acts["r"]()


def _mark(file: Path) -> tuple[int, int, int] | None:
    """What changes when the file does; None where it is not there."""
    try:
        told = os.stat(file)
    except FileNotFoundError:
        return None
    return told.st_mtime_ns, told.st_size, told.st_ino


@contextlib.contextmanager
def terminal() -> Iterator[Callable[[float], str]]:
    """The keys of the terminal, one at a time and without Enter. Raises UsageError where there is none."""
    if not sys.stdin.isatty():
        text = "watch needs a terminal for its keys; without one: crashcourse check EXERCISE"
        raise UsageError(text)
    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    tty.setcbreak(descriptor)

    def key(wait_s: float) -> str:
        ready, _, _ = select.select([descriptor], [], [], wait_s)
        if not ready:
            return ""
        data = os.read(descriptor, 1)
        return data.decode("ascii", "replace") if data else "q"  # the terminal is gone

    try:
        yield key
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
