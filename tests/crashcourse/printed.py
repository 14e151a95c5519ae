"""What a command prints: on a pseudo terminal, into a pipe, without colour, in ASCII, where there is little room."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import struct
import sys
import termios
from dataclasses import dataclass
from typing import TYPE_CHECKING

from crashcourse import cli

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import pytest

ERASED = "\r\x1b[K"


@dataclass(frozen=True, kw_only=True)
class Where:
    """A place to print to. ``terminal``: one of so many columns; a pipe where it is 0."""

    terminal: int = 0
    encoding: str = "utf-8"
    no_color: bool = False


WIDE, NARROW = 100, 46
PLACES = {
    "terminal": Where(terminal=WIDE),
    "pipe": Where(),
    "NO_COLOR": Where(terminal=WIDE, no_color=True),
    "ASCII": Where(terminal=WIDE, encoding="ascii", no_color=True),
    "narrow": Where(terminal=NARROW, no_color=True),
}


def by(arguments: Sequence[str], where: Where, patch: pytest.MonkeyPatch) -> tuple[int, str]:
    """The exit code of a command, and all that it prints."""
    with _streams(where, patch) as printed:
        code = cli.main(arguments)
    return code, printed()


@contextlib.contextmanager
def _streams(where: Where, patch: pytest.MonkeyPatch) -> Iterator[Callable[[], str]]:
    """Let stdout and stderr lead there; what is given says afterwards what came."""
    ours, theirs = pty.openpty() if where.terminal else os.pipe()
    if where.terminal:
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, where.terminal, 0, 0))
    with patch.context() as context:
        context.setenv("TERM", "xterm")
        context.delenv("COLUMNS", raising=False)
        context.setenv("NO_COLOR", "1" if where.no_color else "")
        streams = [os.fdopen(descriptor, "w", encoding=where.encoding) for descriptor in (theirs, os.dup(theirs))]
        context.setattr(sys, "stdout", streams[0])
        context.setattr(sys, "stderr", streams[1])
        said: list[str] = []
        try:
            yield lambda: said[0]
        finally:
            for stream in streams:
                stream.close()
            said.append(_all_of(ours).decode(where.encoding))


def _all_of(descriptor: int) -> bytes:
    """What lies there, up to its end, which on a terminal is an error. It is little: it fits into the buffer."""
    data = b""
    with os.fdopen(descriptor, "rb", buffering=0) as file, contextlib.suppress(OSError):
        while more := file.read(65_536):
            data += more
    return data


def seen(text: str) -> str:
    """What stands on the terminal in the end: a line that was erased is gone."""
    lines = [line.removesuffix("\r").rpartition(ERASED)[2] for line in text.split("\n")]
    return "\n".join(lines)


def masked(text: str) -> str:
    """Without what is measured: how many states, and what this machine has. The columns stay."""
    text = re.sub(r"^(.{20})[ \d]{4} (of \d+ )?states$", _counts, text, flags=re.MULTILINE)
    text = re.sub(
        r"python 3\.\d+, fork yes, strace \S+, isolation \S+", "python 3.#, fork yes, strace #, isolation #", text
    )
    return re.sub(r"note   \d+ exercises", "note   # exercises", text)


def _counts(found: re.Match[str]) -> str:
    return f"{found[1]}   # {'of # ' if found[2] else ''}states"
