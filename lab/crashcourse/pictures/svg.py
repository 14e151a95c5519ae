"""A small drawing board for SVG: text, boxes and lines on a light panel, in one fixed-width type.

The panel has a colour of its own, so that a picture reads on a dark page as on a light one, also inside an ``img``,
where a page's style does not reach. A verdict is told by a word or a letter and never by its colour alone. Text is
text, not paths: it can be searched and read aloud. Widths are reckoned, not measured: in a fixed-width type every
letter is about 0.6 of its height wide (assumed; 0.60 to 0.61 in the common ones), and lines are cut where they would
leave the panel. Where the text of a picture is put into a page, all of it shrinks with a page that is narrower; where
it is an ``img``, that is for the page to say, and the pages of nbconvert do not.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from xml.sax.saxutils import escape, quoteattr

WIDTH = 860
MARGIN = 20
SIZE = 13
FONT = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
INK, DIM, PANEL, RULE = "#1f2328", "#57606a", "#fcfcfa", "#d0d7de"
GOOD, BAD, DOUBT, COOL = "#116329", "#a40e26", "#7d4e00", "#0550ae"
TINTS = {GOOD: "#dafbe1", BAD: "#ffe2e0", DOUBT: "#fff3c4", COOL: "#ddf0ff", DIM: "#eff1f3"}
"""For each colour of letters the ground on which it stands; all have a contrast of at least 5 to 1."""
_RANDOM = re.compile(r"(?<![0-9a-f])[0-9a-f]{12,}(?![0-9a-f])")


@dataclass(frozen=True, repr=False)
class Picture:
    """One picture: ``svg`` is its text, ``text`` its twin in ASCII, which says the same."""

    title: str
    svg: str
    text: str

    def _repr_svg_(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        return self.text

    def __str__(self) -> str:
        return self.text


def plain(text: str) -> str:
    r"""The text with everything escaped that no terminal and no XML should get.

    >>> plain("a\x1b[31m\x00 caf\u00e9")
    'a\\x1b[31m\\x00 caf\\xe9'
    """
    safe = text.replace("\u2026", "...").encode("ascii", "backslashreplace").decode()
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in safe)


def steady(text: str) -> str:
    """The text without what is drawn at random, which would make every picture another one.

    >>> steady("checkpoint.json.d0223d21fbf94854.tmp  492 bytes")
    'checkpoint.json.*.tmp  492 bytes'
    """
    return _RANDOM.sub("*", text)


def cut(text: str, letters: int) -> str:
    """The text in at most so many letters; dots stand for the rest.

    >>> cut("a long name", 8)
    'a lon...'
    """
    text = plain(text)
    return text if len(text) <= letters else text[: max(0, letters - 3)] + "..."


def width(text: str, size: float = SIZE) -> float:
    """About how wide a text is."""
    return round(len(text) * size * 0.605, 1)


def letters_in(space: float, size: float = SIZE) -> int:
    """How many letters stand in so much space."""
    return int(space / (size * 0.605))


@dataclass
class Board:
    """Elements that were put so far."""

    elements: list[str] = field(default_factory=list)

    def text(  # noqa: PLR0913 - all but three by keyword
        self,
        x: float,
        y: float,
        text: str,
        *,
        color: str = INK,
        size: float = SIZE,
        bold: bool = False,
        anchor: str = "start",
    ) -> None:
        """A line of text whose foot stands at ``y``."""
        weight = ' font-weight="700"' if bold else ""
        place = "" if anchor == "start" else f' text-anchor="{anchor}"'
        height = "" if size == SIZE else f' font-size="{size:g}"'
        spaced = ' xml:space="preserve"' if "  " in text else ""
        self.elements.append(
            f'<text x="{x:g}" y="{y:g}" fill="{color}"{height}{weight}{place}{spaced}>{escape(plain(text))}</text>'
        )

    def box(  # noqa: PLR0913 - all but four by keyword
        self, x: float, y: float, wide: float, high: float, *, fill: str, stroke: str = "none", radius: float = 4
    ) -> None:
        """A box with round corners."""
        self.elements.append(
            f'<rect x="{x:g}" y="{y:g}" width="{wide:g}" height="{high:g}" rx="{radius:g}" '
            f'fill="{fill}" stroke="{stroke}"/>'
        )

    def line(  # noqa: PLR0913 - all but four by keyword
        self, x: float, y: float, to_x: float, to_y: float, *, color: str = RULE, thick: float = 1, dashed: bool = False
    ) -> None:
        """A straight line."""
        dashes = ' stroke-dasharray="4 4"' if dashed else ""
        self.elements.append(
            f'<line x1="{x:g}" y1="{y:g}" x2="{to_x:g}" y2="{to_y:g}" stroke="{color}" '
            f'stroke-width="{thick:g}"{dashes}/>'
        )

    def dot(self, x: float, y: float, *, color: str, radius: float = 4, hollow: bool = False) -> None:
        """A round mark."""
        fill = PANEL if hollow else color
        self.elements.append(
            f'<circle cx="{x:g}" cy="{y:g}" r="{radius:g}" fill="{fill}" stroke="{color}" stroke-width="1.5"/>'
        )

    def cross(self, x: float, y: float, *, color: str = BAD, arm: float = 6) -> None:
        """Where it died."""
        for sign in (1, -1):
            self.line(x - arm, y - sign * arm, x + arm, y + sign * arm, color=color, thick=2.5)

    def pill(self, x: float, y: float, text: str, *, color: str, wide: float = 0) -> None:
        """Words on a tinted ground; ``y`` is the foot of the words."""
        space = wide or width(text) + 12
        self.box(x, y - 15, space, 21, fill=TINTS[color])
        self.text(x + space / 2, y, text, color=color, anchor="middle", bold=color == BAD)

    def picture(self, title: str, text: str, *, height: float, wide: float = WIDTH) -> Picture:
        """All of it on a panel, under its title. The twin is what a screen reader says."""
        title = plain(title)
        key = hashlib.blake2b(f"{title}\n{text}".encode(), digest_size=4).hexdigest()  # many stand on one page
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide:g} {height:g}" width="{wide:g}" '
            f'height="{height:g}" style="max-width:100%;height:auto" role="img" aria-labelledby="t{key} d{key}" '
            f'font-family={quoteattr(FONT)} font-size="{SIZE}">'
        )
        sides = f'width="{wide - 1:g}" height="{height - 1:g}"'
        panel = f'<rect x="0.5" y="0.5" {sides} rx="8" fill="{PANEL}" stroke="{RULE}"/>'
        named = f'<title id="t{key}">{escape(title)}</title>\n<desc id="d{key}">{escape(text)}</desc>'
        shown = f'<text x="{MARGIN}" y="32" fill="{INK}" font-size="15" font-weight="700">{escape(title)}</text>'
        body = "\n".join([head, named, panel, shown, *self.elements, "</svg>"])
        return Picture(title, body + "\n", f"{title}\n\n{text}\n")


TOP = 62
"""Where the first line of a picture stands, below its title."""
