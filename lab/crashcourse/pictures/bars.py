"""Bars: one number per design, such as how many crash states end without an answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crashcourse.pictures.svg import (
    BAD,
    COOL,
    DIM,
    MARGIN,
    TINTS,
    TOP,
    WIDTH,
    Board,
    Picture,
    cut,
    letters_in,
    plain,
    width,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

_ROW, _LETTERS = 30, 40


def bars(title: str, counts: Mapping[str, int], *, unit: str, bad: Collection[str] = ()) -> Picture:
    """A bar per name; those of ``bad`` have the colour of a violation, and a ``!`` in words.

    >>> print(bars("Unknown", {"correct": 2, "record at B": 4}, unit="states", bad=["record at B"]))
    Unknown
    <BLANKLINE>
      correct      2  ##
      record at B  4  ####  !
    <BLANKLINE>
      states
    <BLANKLINE>
    """
    names = max(len(cut(name, 40)) for name in counts)
    most = max([*counts.values(), 1])
    digits = len(str(most))
    lines = [
        f"  {cut(name, 40):{names}}  {count:{digits}}  {'#' * _hashes(count, most)}{'  !' * (name in bad)}".rstrip()
        for name, count in counts.items()
    ]
    board, left = Board(), MARGIN + width("m" * names) + 20
    for at, (name, count) in enumerate(counts.items()):
        y = TOP + _ROW * at
        color = BAD if name in bad else COOL
        long = (WIDTH - left - MARGIN - 60) * count / most
        board.text(MARGIN, y, cut(name, 40))
        board.box(left, y - 15, max(long, 2), 20, fill=TINTS[color], stroke=color, radius=3)
        board.text(left + long + 10, y, str(count), color=color, bold=True)
    y = TOP + _ROW * len(counts) + 2
    board.text(MARGIN, y, cut(unit, letters_in(WIDTH - 2 * MARGIN)), color=DIM)
    return board.picture(title, "\n".join([*lines, "", f"  {plain(unit)}"]), height=y + 20)


def _hashes(count: int, most: int) -> int:
    return count if most <= _LETTERS else round(count * _LETTERS / most)
