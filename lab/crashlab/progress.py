"""How far a check has come, on stderr: stdout is for data.

On a terminal one line is rewritten; elsewhere, for example in a build log, a plain line appears
every ten seconds and nothing before that, so that a quick check leaves no trace. The time comes from
a clock that a test can turn.
"""

from __future__ import annotations

import io
import os
import shutil
import time
from typing import TYPE_CHECKING, Self, TextIO

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

TERMINAL_EVERY_S = 0.1
PLAIN_EVERY_S = 10.0
_ERASE = "\r\x1b[K"


class Progress:
    r"""Pass it as ``progress`` to :func:`crashlab.explore`; use it as a context manager to clean up.

    >>> import io
    >>> stream, clock = io.StringIO(), iter([0.0, 12.0])
    >>> Progress(stream, name="store", clock=lambda: next(clock))("judging", 5, 20)
    >>> stream.getvalue()
    'store: judging 5 of 20, 12 s\n'
    """

    def __init__(
        self, stream: TextIO | None, *, name: str = "", quiet: bool = False, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._stream = stream or io.StringIO()
        self._name = name
        self._quiet = quiet or stream is None
        self._clock = clock
        self._terminal = is_terminal(stream)
        self._started_s = self._shown_s = clock()
        self._phase = ""
        self._last = ""
        self._drawn = False

    def __call__(self, phase: str, done: int, total: int) -> None:
        """Say that ``done`` of ``total`` of this phase are done; a ``total`` of 0 is not known."""
        if self._quiet:
            return
        now_s = self._clock()
        amount = f" {done:,} of {total:,}" if total else f" {done:,}" if done else ""
        self._last = _safe(f"{self._name + ': ' if self._name else ''}{phase}{amount}, {now_s - self._started_s:.0f} s")
        due = now_s - self._shown_s >= (TERMINAL_EVERY_S if self._terminal else PLAIN_EVERY_S)
        if not due and not (self._terminal and phase != self._phase):
            return
        self._shown_s, self._phase = now_s, phase
        self._show(self._last)

    def close(self) -> None:
        """Take the line off the terminal, so that what follows starts on a clean one."""
        if self._drawn:
            self._stream.write(_ERASE)
            self._stream.flush()
            self._drawn = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, error_type: type[BaseException] | None, *_: object) -> None:
        self.close()
        if error_type is KeyboardInterrupt and self._last:
            self._stream.write(f"{self._last}, then interrupted\n")
            self._stream.flush()

    def _show(self, text: str) -> None:
        if self._terminal:
            columns = shutil.get_terminal_size().columns
            self._stream.write(_ERASE + text[: columns - 1])  # a full line would scroll on some terminals
            self._drawn = True
        else:
            self._stream.write(text + "\n")
        self._stream.flush()


def _safe(text: str) -> str:
    text = text.encode("ascii", "backslashreplace").decode()
    return "".join(character if character.isprintable() else f"\\x{ord(character):02x}" for character in text)


def is_terminal(stream: TextIO | None, environment: Mapping[str, str] = os.environ) -> bool:
    """Whether lines on ``stream`` can be rewritten and coloured; a closed one (``>&-``) is None."""
    return stream is not None and stream.isatty() and environment.get("TERM") != "dumb"
