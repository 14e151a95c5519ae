"""Lines of text for a terminal: safe, no wider than the page, coloured only when asked.

Everything that is shown passes through :func:`printable`, because file names, values and messages
come from the program under test: an escape sequence in a file name must not move the cursor of the
person who reads the report. Words are coloured by the role they play, never by markup inside the
text, so that ``[bold]`` in a message stays ``[bold]``.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Part = str | tuple[str, str]
"""A piece of a line: plain text, or text and the role it plays."""

STYLES: dict[str, str] = {
    "": "",
    "pass": "bold green",
    "consistent": "green",
    "refused": "cyan",
    "violation": "bold red",
    "unmeasured": "bold yellow",
    "strong": "bold",
    "label": "dim",
    "dim": "dim",
    "note": "yellow",
    "fault": "red",
    "command": "cyan",
}
LABEL_WIDTH = 11
"""Columns of the word before a paragraph: ``why``, ``advice``, …"""

_ASCII = {"…": "...", "·": ".", "×": "x", "→": "->"}
_SHORT_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
_BYTE, _WIDE = 0x100, 0x10000


def printable(text: str, *, ascii_only: bool = False) -> str:
    r"""``text`` on one line, with every character that a terminal would obey or hide written as an escape.

    Control characters, ANSI escapes, lone surrogates, and invisible or direction-changing characters
    are escaped; with ``ascii_only`` everything that is no ASCII too.

    >>> print(printable("a\x1b[31mb"))
    a\x1b[31mb
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(_printable_character(character, ascii_only) for character in text)


def _printable_character(character: str, ascii_only: bool) -> str:  # noqa: FBT001 - private, called in one place
    if character.isprintable() and (character.isascii() or not ascii_only):
        return character
    if ascii_only and character in _ASCII:
        return _ASCII[character]
    code = ord(character)
    if character in _SHORT_ESCAPES:
        return _SHORT_ESCAPES[character]
    return f"\\x{code:02x}" if code < _BYTE else f"\\u{code:04x}" if code < _WIDE else f"\\U{code:08x}"


def cut(text: str, width: int, *, ascii_only: bool = False) -> str:
    """``text``, or its beginning and an ellipsis where it is wider than ``width`` columns.

    >>> cut("checkpoint.json", 8)
    'checkpo…'
    """
    if cell_len(text) <= width:
        return text
    ellipsis = "..." if ascii_only else "…"
    kept = Text(text)
    kept.truncate(max(width - len(ellipsis), 0), overflow="crop")
    return (kept.plain.rstrip() + ellipsis)[: max(width, 1)]


def count(number: int, one: str, many: str = "") -> str:
    """``1 op``, ``1,204 ops``."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def duration(seconds: float) -> str:
    """Seconds for people: ``0.8 s``, ``2 min 5 s``."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes > 1 else f"{seconds:.1f} s"


class Page:
    """Collects lines; :meth:`text` gives them all. ``width`` in columns, ``ascii_only`` for old terminals."""

    def __init__(self, *, color: bool, width: int = 100, ascii_only: bool = False) -> None:
        self.color = color
        self.width = width
        self.ascii_only = ascii_only
        self._lines: list[Text] = []
        # An environment of its own: the caller has decided about colour, rich must not decide again.
        self._console = Console(
            file=io.StringIO(),
            width=width,
            force_terminal=color,
            force_jupyter=False,  # in a notebook rich would show an empty output beside each text
            color_system="standard" if color else None,
            no_color=not color,
            legacy_windows=False,
            highlight=False,
            markup=False,
            emoji=False,
            _environ={},
        )

    def safe(self, text: str) -> str:
        """``text`` with everything escaped that this page cannot show as it is."""
        return printable(text, ascii_only=self.ascii_only)

    def fit(self, text: str, width: int) -> str:
        """``text`` made safe and cut to ``width`` columns."""
        return cut(self.safe(text), width, ascii_only=self.ascii_only)

    def padded(self, text: str, width: int) -> str:
        """``text`` made safe and filled, or cut, to exactly ``width`` columns."""
        fitted = self.fit(text, width)
        return fitted + " " * (width - cell_len(fitted))

    def columns(self, texts: Iterable[str], limit: int) -> int:
        """The width of the widest of these texts, but at most ``limit``."""
        return min(max((cell_len(self.safe(text)) for text in texts), default=0), limit)

    def line(self, *parts: Part) -> None:
        """Add one line; what does not fit is cut with an ellipsis."""
        line, room = Text(), self.width
        for part in parts:
            text, role = (part, "") if isinstance(part, str) else part
            fitted = self.fit(text, room)
            line.append(fitted, STYLES[role])
            room -= cell_len(fitted)
            if fitted != self.safe(text) or room <= 0:
                break
        line.rstrip()
        self._lines.append(line)

    def whole(self, text: str, *, first: Sequence[Part] = (), role: str = "") -> None:
        """Add one line that is neither cut nor wrapped here: half a command cannot be copied, and terminals wrap."""
        line = Text()
        for part, style in [*((each, "") if isinstance(each, str) else each for each in first), (text, role)]:
            line.append(self.safe(part), STYLES[style])
        self._lines.append(line)

    def blank(self) -> None:
        """Add an empty line, but never two."""
        if self._lines and self._lines[-1].plain:
            self._lines.append(Text())

    def paragraph(self, text: str, *, indent: int = 2, first: Sequence[Part] = (), role: str = "") -> None:
        """Add ``text`` wrapped to the page; lines after the first stand under ``indent``.

        ``first`` stands before the text on its first line; line breaks in ``text`` are kept.
        """
        lead = Text()
        for part in first:
            words, style = (part, "") if isinstance(part, str) else part
            lead.append(self.safe(words), STYLES[style])
        if not first:
            lead.append(" " * indent)
        for paragraph in text.splitlines() or [""]:
            hanging = max(cell_len(lead.plain) - indent, 0)  # a long lead shortens the first line only
            body = Text("x" * hanging) + Text(self.safe(paragraph), STYLES[role])
            for number, wrapped in enumerate(body.wrap(self._console, self.width - indent, overflow="fold")):
                line = lead + wrapped[hanging:] if number == 0 else Text(" " * indent) + wrapped
                line.rstrip()
                self._lines.append(line)
            lead = Text(" " * indent)

    def labelled(self, label: str, text: str, *, role: str = "") -> None:
        """Add a paragraph behind a word in the left column."""
        first = ("  ", (label.ljust(LABEL_WIDTH), "label"))
        self.paragraph(text, indent=2 + LABEL_WIDTH, first=first, role=role)

    def text(self) -> str:
        """Everything added, with a newline at the end and no empty line before it."""
        while self._lines and not self._lines[-1].plain:
            self._lines.pop()
        with self._console.capture() as captured:
            for line in self._lines:
                self._console.print(line, soft_wrap=True)
        return captured.get()
