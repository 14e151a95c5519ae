"""The matrix: which design falls to which fault. Rows are designs, columns are faults, a cell says what came of it."""

from __future__ import annotations

import textwrap
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
    TINTS,
    TOP,
    WIDTH,
    Board,
    Picture,
    cut,
    width,
)
from crashlab.kinds import gravity

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from crashlab import Report

_ROW, _GAP, _LINE, _SHORT = 30, 8, 16, 12
_WORDS = {"consistent": "ok", "refused": "refused", "unmeasured": "?", "": "not tried"}
_COLORS = {"consistent": GOOD, "refused": COOL, "unmeasured": DOUBT, "violation": BAD, "": DIM}


@dataclass(frozen=True)
class Cell:
    """What came of one design under one fault: a verdict, ``""`` where it was not tried, and the kind of a violation.

    >>> Cell("violation", "lost").word, Cell("consistent").word, Cell().word
    ('V lost', 'ok', 'not tried')
    """

    verdict: str = ""
    kind: str = ""

    @property
    def word(self) -> str:
        """What stands in the cell; a violation has a V, whatever the colours."""
        return f"V {cut(self.kind, 24)}".rstrip() if self.verdict == "violation" else _WORDS[self.verdict]


def matrix(title: str, columns: Sequence[str], rows: Mapping[str, Mapping[str, Cell]]) -> Picture:
    """The picture of ``rows``: a name, and a cell per column; what has none was not tried.

    >>> cells = {"kill": Cell("consistent"), "power": Cell("violation")}
    >>> print(matrix("Saves", ["kill", "power"], {"no_fsync": cells}))
    Saves
    <BLANKLINE>
                kill   power
      no_fsync  ok     V
    <BLANKLINE>
    """
    heads = [cut(column, 24) for column in columns]
    cells = {name: [row.get(column, Cell()) for column in columns] for name, row in rows.items()}
    words = {name: [cell.word for cell in row] for name, row in cells.items()}
    names = max((len(cut(name, 40)) for name in rows), default=0)
    wide = _widths(heads, words, _whole)
    lines = [_line("", heads, names, wide), *(_line(cut(name, 40), row, names, wide) for name, row in words.items())]
    left = MARGIN + width("m" * names) + 18
    board = Board()
    right, foot = _draw(board, left, heads, cells, _whole if left + _space(wide) <= WIDTH else _broken)
    title_space = MARGIN * 2 + width(title, 15)
    return board.picture(title, "\n".join(lines), height=foot, wide=max(right + MARGIN, title_space))


def _whole(word: str) -> list[str]:
    return [word]


def _broken(word: str) -> list[str]:
    """A long word on two lines, so that a table of many columns stays on a page."""
    return textwrap.wrap(word, _SHORT) or [""]


def _widths(heads: Sequence[str], words: Mapping[str, Sequence[str]], broken: Callable[[str], list[str]]) -> list[int]:
    """How many letters each column needs."""
    return [
        max(len(head), *(len(line) for row in words.values() for line in broken(row[at])))
        for at, head in enumerate(heads)
    ]


def _space(wide: Sequence[int]) -> float:
    return sum(width("m" * each) + 16 for each in wide) + _GAP * (len(wide) - 1) + MARGIN


def _draw(
    board: Board,
    left: float,
    heads: Sequence[str],
    cells: Mapping[str, Sequence[Cell]],
    broken: Callable[[str], list[str]],
) -> tuple[float, float]:
    """Draw the table, and return where it ends to the right and below."""
    wide = _widths(heads, {name: [cell.word for cell in row] for name, row in cells.items()}, broken)
    space = [width("m" * each) + 16 for each in wide]
    starts = [left + sum(space[:at]) + _GAP * at for at in range(len(heads))]
    for x, head, each in zip(starts, heads, space, strict=True):
        board.text(x + each / 2, TOP, head, anchor="middle", bold=True)
    y: float = TOP + _ROW
    for name, row in cells.items():
        lines = max(len(broken(cell.word)) for cell in row)
        board.line(MARGIN, y - 20, starts[-1] + space[-1], y - 20, color=RULE)
        board.text(MARGIN, y, cut(name, 40))
        for x, cell, each in zip(starts, row, space, strict=True):
            _cell(board, x, y, cell, each, lines, broken)
        y += _ROW + _LINE * (lines - 1)
    return starts[-1] + space[-1], y - _ROW + 18


def _cell(  # noqa: PLR0913, PLR0917 - where, what, and how large
    board: Board, x: float, y: float, cell: Cell, wide: float, lines: int, broken: Callable[[str], list[str]]
) -> None:
    color = _COLORS[cell.verdict]
    board.box(x, y - 15, wide, 21 + _LINE * (lines - 1), fill=TINTS[color])
    for at, line in enumerate(broken(cell.word)):
        board.text(x + wide / 2, y + _LINE * at, line, color=color, anchor="middle", bold=color == BAD)


def _line(name: str, words: Sequence[str], names: int, wide: Sequence[int]) -> str:
    cells = "   ".join(f"{word:{each}}" for word, each in zip(words, wide, strict=True))
    return f"  {name:{names}}  {cells}".rstrip()


def matrix_of(title: str, reports: Sequence[Report]) -> Picture:
    """A row per report, named by its subject, a column per fault that any of them tried."""
    columns = list(dict.fromkeys(count.fault for report in reports for count in report.faults))
    return matrix(title, columns, {report.subject.name: cells_of(report) for report in reports})


def cells_of(report: Report) -> dict[str, Cell]:
    """The worst that came of each fault, with the gravest kind of its findings."""
    cells = {}
    for count in report.faults:
        kinds = sorted((each.kind for each in report.findings if each.fault == count.fault), key=gravity)
        if count.violation:
            cells[count.fault] = Cell("violation", kinds[0] if kinds else "")
        elif count.unmeasured or not count.judged + count.known:
            cells[count.fault] = Cell("unmeasured")
        else:
            cells[count.fault] = Cell("consistent" if count.consistent or not count.refused else "refused")
    if report.unmeasured and report.verdict == "unmeasured":
        cells = {fault: cell if cell.verdict == "violation" else Cell("unmeasured") for fault, cell in cells.items()}
    return cells
