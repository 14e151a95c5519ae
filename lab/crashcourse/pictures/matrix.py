"""The matrix: which design falls to which fault. Rows are designs, columns are faults, a cell says what came of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from crashcourse.pictures.svg import BAD, COOL, DIM, DOUBT, GOOD, MARGIN, RULE, TOP, Board, Picture, cut, width
from crashlab.kinds import gravity

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from crashlab import Report

_ROW, _GAP = 30, 8
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
    cells = {name: [row.get(column, Cell()).word for column in columns] for name, row in rows.items()}
    names = max((len(cut(name, 40)) for name in rows), default=0)
    wide = [max(len(head), *(len(row[at]) for row in cells.values())) for at, head in enumerate(heads)]
    text = "\n".join(
        [
            _line("", heads, names, wide),
            *(_line(cut(name, 40), row, names, wide) for name, row in cells.items()),
        ]
    )
    board, space = Board(), [width("m" * each) + 16 for each in wide]
    left = MARGIN + width("m" * names) + 18
    starts = [left + sum(space[:at]) + _GAP * at for at in range(len(heads))]
    for x, head, each in zip(starts, heads, space, strict=True):
        board.text(x + each / 2, TOP, head, anchor="middle", bold=True)
    for at, (name, row) in enumerate(rows.items()):
        y = TOP + _ROW * (at + 1)
        board.line(MARGIN, y - 20, starts[-1] + space[-1], y - 20, color=RULE)
        board.text(MARGIN, y, cut(name, 40))
        for x, column, each in zip(starts, columns, space, strict=True):
            cell = row.get(column, Cell())
            board.pill(x, y, cell.word, color=_COLORS[cell.verdict], wide=each)
    right = starts[-1] + space[-1] + MARGIN
    title_space = MARGIN * 2 + width(title, 15)
    return board.picture(title, text, height=TOP + _ROW * len(rows) + 18, wide=max(right, title_space))


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
