"""The ladder: what the process, the disk and the world know at each instant, and which of it a death takes."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING

from crashcourse.pictures.svg import (
    BAD,
    COOL,
    DIM,
    GOOD,
    INK,
    MARGIN,
    RULE,
    TOP,
    WIDTH,
    Board,
    Picture,
    letters_in,
    plain,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

_LINE = 18
_COLUMNS = (("instant", 210), ("process", 230), ("disk", 210), ("world", 170))


@dataclass(frozen=True)
class Rung:
    """One instant and what three places know at it. ``dies`` says that the process is killed right after it.

    What nobody knows is an empty text.
    """

    instant: str
    process: str = ""
    disk: str = ""
    world: str = ""
    dies: bool = False


def ladder(title: str, rungs: Sequence[Rung], *, heads: Sequence[str] = ("process", "disk", "world")) -> Picture:
    """A row per instant, from top to bottom. ``heads`` name the three places otherwise.

    >>> print(ladder("One mail", [Rung("sent", "1 mail", "", "1 mail", dies=True), Rung("after", "", "", "1 mail")]))
    One mail
    <BLANKLINE>
      instant  process  disk  world
      sent     1 mail   -     1 mail
      X killed
      after    -        -     1 mail
    <BLANKLINE>
    """
    board, y = Board(), float(TOP)
    starts = [MARGIN + sum(space for _, space in _COLUMNS[:at]) for at in range(4)]
    for x, head in zip(starts, ("instant", *heads), strict=True):
        board.text(x, y, head, color=DIM)
    y += 12
    for rung in rungs:
        y = _rung(board, y, starts, rung)
    return board.picture(title, _text(rungs, heads), height=y + 14)


def _cells(rung: Rung) -> tuple[str, str, str, str]:
    return rung.instant, rung.process or "-", rung.disk or "-", rung.world or "-"


def _rung(board: Board, y: float, starts: Sequence[float], rung: Rung) -> float:
    colors = (INK, COOL, GOOD, INK)
    board.line(MARGIN, y, WIDTH - MARGIN, y, color=RULE)
    lines = [
        textwrap.wrap(plain(cell), letters_in(space - 14), break_long_words=True) or [""]
        for cell, (_, space) in zip(_cells(rung), _COLUMNS, strict=True)
    ]
    for x, cell, color in zip(starts, lines, colors, strict=True):
        for at, line in enumerate(cell):
            board.text(x, y + 20 + _LINE * at, line, color=DIM if line == "-" else color)
    y += _LINE * max(map(len, lines)) + 12
    if rung.dies:
        board.line(MARGIN, y, WIDTH - MARGIN, y, color=BAD, thick=1.5, dashed=True)
        board.cross(MARGIN + 6, y + 13)
        board.text(MARGIN + 22, y + 18, "killed", color=BAD, bold=True)
        y += 26
    return y


def _text(rungs: Sequence[Rung], heads: Sequence[str]) -> str:
    rows = [("instant", *heads), *(_cells(rung) for rung in rungs)]
    wide = [max(len(plain(row[at])) for row in rows) for at in range(4)]
    lines = []
    for at, row in enumerate(rows):
        lines.append("  " + "  ".join(f"{plain(cell):{each}}" for cell, each in zip(row, wide, strict=True)).rstrip())
        if at and rungs[at - 1].dies:
            lines.append("  X killed")
    return "\n".join(lines)
