"""The tree of points: every save of a run, which one each continues, and which is the head of its line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from crashcourse.pictures.svg import (
    BAD,
    COOL,
    DIM,
    DOUBT,
    GOOD,
    MARGIN,
    RULE,
    TOP,
    WIDTH,
    Board,
    Picture,
    letters_in,
    plain,
)
from crashcourse.pictures.svg import cut as shortened

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

_ROW, _INDENT = 26, 26
_COLORS = (COOL, GOOD, DOUBT)


@dataclass(frozen=True)
class Point:
    """One saved point: its number, the point that it continues (0 for none), its line, and what stands in it.

    ``name`` is shown instead of the number, for points of several folders whose numbers are not one sequence.
    """

    seq: int
    parent: int
    line: str
    text: str = ""
    name: str = ""

    @property
    def shown(self) -> str:
        """What stands in front of it."""
        return self.name or str(self.seq)


def point_tree(title: str, points: Sequence[Point], *, heads: Collection[int] = (), wrong: int = 0) -> Picture:
    """The points in the order of their numbers, each line with its own indent; ``wrong`` is a head that should be none.

    >>> print(point_tree("Back once", [Point(1, 0, "main", "turn 1"), Point(2, 1, "main", "turn 2"),
    ...                                Point(3, 1, "main@3", "turn 1 again")], heads=[3]))
    Back once
    <BLANKLINE>
      1 o         main    turn 1
      2 o         main    turn 2
      3   o  < 1  main@3  turn 1 again   HEAD
    <BLANKLINE>
    """
    lines = list(dict.fromkeys(point.line for point in points))
    by_seq = {point.seq: at for at, point in enumerate(points)}
    text = _text(points, lines, heads, wrong)
    board, named = Board(), MARGIN + 60 + _INDENT * len(lines)
    letters = letters_in(WIDTH - named - 200 - MARGIN - 90)
    columns = [MARGIN + 46 + _INDENT * lines.index(point.line) for point in points]
    for at, point in enumerate(points):  # the lines first: the dots stand on them
        before = by_seq.get(point.parent)
        if before is not None:
            color = RULE if columns[before] == columns[at] else _color(lines, point)
            board.line(columns[before], TOP + _ROW * before - 4, columns[at], TOP + _ROW * at - 4, color=color, thick=2)
    for at, point in enumerate(points):
        y, color = TOP + _ROW * at, _color(lines, point)
        board.text(MARGIN + 26, y, shortened(point.shown, 5), color=DIM, anchor="end")
        board.dot(columns[at], y - 4, color=color, radius=5, hollow=point.seq not in heads)
        board.text(named, y, shortened(point.line, 20), color=color)
        board.text(named + 190, y, shortened(point.text, letters))
        if point.seq in heads or point.seq == wrong:
            good = point.seq in heads
            board.pill(WIDTH - MARGIN - 90, y, "head" if good else "taken", color=GOOD if good else BAD, wide=80)
    return board.picture(title, text, height=TOP + _ROW * len(points) + 6)


def _color(lines: Sequence[str], point: Point) -> str:
    return _COLORS[lines.index(point.line) % 3]


def _text(points: Sequence[Point], lines: Sequence[str], heads: Collection[int], wrong: int) -> str:
    number = max(len(point.shown) for point in points)
    names = max(len(plain(point.line)) for point in points)
    told, last = [], dict.fromkeys(lines, 0)
    for point in points:
        column = lines.index(point.line)
        before = "" if last[point.line] == point.parent else f"< {point.parent}"
        last[point.line] = point.seq
        mark = "   HEAD" * (point.seq in heads) + "   TAKEN FOR THE HEAD" * (point.seq == wrong)
        graph = "  " * column + "o" + "  " * (len(lines) - column - 1)
        words = f"{before:5}{plain(point.line):{names}}  {plain(point.text)}{mark}"
        told.append(f"  {plain(point.shown):>{number}} {graph}  {words}".rstrip())
    return "\n".join(told)
