"""Where the lines of a command go: how wide it is, and whether it takes colour and more than ASCII.

A terminal is as wide as it says, up to 100 columns; a pipe and a file get 100. Colour is for terminals alone, and
not where ``NO_COLOR`` is set or ``TERM`` is ``dumb``. What the encoding of the stream cannot carry is spelt in ASCII.
"""

from __future__ import annotations

import codecs
import os
import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

WIDEST, NARROWEST = 100, 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Screen:
    """``width`` in columns; ``colour`` and ``ascii_only`` as the stream has it."""

    width: int = WIDEST
    colour: bool = False
    ascii_only: bool = True

    def safe(self, text: str) -> str:
        r"""``text`` on one line, with all escaped that this screen cannot show, or would obey.

        >>> Screen().safe("a…\x1b[31m")
        'a...\\x1b[31m'
        """
        if text.isascii() and text.isprintable():
            return text
        from crashlab.report.page import printable  # noqa: PLC0415 - it loads rich, and most lines are plain

        return printable(text, ascii_only=self.ascii_only)

    def folded(self, first: str, text: str) -> Iterator[str]:
        """``text`` behind ``first``, in lines no wider than the screen; those after the first stand below the text.

        A word is never broken, be it wider than the screen: half a path cannot be copied, and terminals wrap.
        """
        room = max(self.width - len(first), NARROWEST // 2)
        lines = textwrap.wrap(self.safe(text), room, break_on_hyphens=False, break_long_words=False) or [""]
        yield (first + lines[0]).rstrip()
        yield from (" " * len(first) + line for line in lines[1:])

    def painted(self, text: str, code: str) -> str:
        """``text`` in bold and a colour of ANSI, where this screen has colours."""
        return f"\x1b[{code};1m{text}\x1b[0m" if self.colour else text


def of(stream: TextIO | None, environment: Mapping[str, str] = os.environ) -> Screen:
    """The screen that ``stream`` leads to; a closed one (``>&-``) is None."""
    if stream is None:
        return Screen()
    terminal = stream.isatty()
    colour = terminal and not environment.get("NO_COLOR") and environment.get("TERM") != "dumb"
    width = _columns(stream, environment) if terminal else WIDEST
    return Screen(
        width=max(NARROWEST, min(width, WIDEST)), colour=colour, ascii_only=not _carries_unicode(stream.encoding)
    )


def _columns(terminal: TextIO, environment: Mapping[str, str]) -> int:
    """As ``shutil.get_terminal_size`` has it, of the stream that is asked about; a terminal may not know (0)."""
    said = environment.get("COLUMNS", "")
    if said.isdecimal() and int(said) > 0:
        return int(said)
    try:
        return os.get_terminal_size(terminal.fileno()).columns or WIDEST
    except OSError:
        return WIDEST


def _carries_unicode(encoding: str | None) -> bool:
    try:
        return codecs.lookup(encoding or "ascii").name.startswith("utf")
    except LookupError:
        return False
