"""The time line of one crash: what was done on top, the crash as a cross, and below it what is left."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from crashcourse.pictures.svg import (
    BAD,
    COOL,
    DIM,
    DOUBT,
    GOOD,
    INK,
    MARGIN,
    RULE,
    TOP,
    WIDTH,
    Board,
    Picture,
    cut,
    letters_in,
    plain,
    steady,
    width,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crashlab import Finding

_LANE, _ROW, _NAME = 34, 22, 24
_COLORS = (COOL, INK, GOOD)
_SIGNS = "|*o+"
_TOLD = 7
"""So many marks are told in words."""


@dataclass(frozen=True)
class Mark:
    """One thing on the time line: when, as a number that only orders, on which lane, and what it was.

    ``lost`` says that the crash took it although it had been done.
    """

    at: int
    lane: str
    text: str = ""
    lost: bool = False


def timeline(  # noqa: PLR0913 - all but two by keyword
    title: str,
    marks: Sequence[Mark],
    *,
    crash: int,
    crash_text: str,
    left: Sequence[str],
    gone: Sequence[str] = (),
) -> Picture:
    """Lanes of marks, a cross behind mark number ``crash``, and below it what is left and gone.

    Marks behind the crash never happened; they are drawn hollow.

    >>> print(timeline("A save", [Mark(1, "saves", "seq 1"), Mark(2, "acts", "mail")],
    ...                crash=2, crash_text="killed", left=["a.json  9 bytes"]))
    A save
    <BLANKLINE>
      saves    |
      acts      *
      crash     X killed
    <BLANKLINE>
      1 saves: seq 1
      2 acts: mail
    <BLANKLINE>
      left    a.json  9 bytes
    <BLANKLINE>
    """
    story = _Story(marks, crash, crash_text, left, gone)
    board, last, lanes = Board(), max(mark.at for mark in marks), story.lanes
    start = MARGIN + 20 + width("m" * max(len(cut(each, _NAME)) for each in lanes))
    step = min(60.0, (WIDTH - start - MARGIN - 10) / max(1, last))
    for at, lane in enumerate(lanes):
        y = TOP + 8 + _LANE * at
        board.text(MARGIN, y + 4, cut(lane, _NAME), color=DIM)
        board.line(start, y, start + step * last, y)
        for mark in (mark for mark in marks if mark.lane == lane):
            _mark(board, start + step * (mark.at - 0.5), y, mark, _COLORS[at % 3], dead=mark.at > crash)
    foot = TOP + _LANE * len(lanes)
    _wall(board, start + step * crash, foot, crash_text)
    return board.picture(title, story.text(), height=_below(board, foot + 42, story))


def _wall(board: Board, x: float, foot: float, text: str) -> None:
    """Where the crash was, with its words on the side where there is room."""
    board.line(x, TOP - 10, x, foot, color=BAD, thick=1.5)
    board.cross(x, foot + 4)
    left = x + 14 + width(text) > WIDTH - MARGIN
    words = cut(text, letters_in((x if left else WIDTH - x) - 14 - MARGIN))
    board.text(x + (-14 if left else 14), foot + 9, words, color=BAD, bold=True, anchor="end" if left else "start")


def _mark(board: Board, x: float, y: float, mark: Mark, color: str, *, dead: bool) -> None:  # noqa: PLR0913 - one mark
    if mark.lost:
        board.dot(x, y, color=BAD, radius=5, hollow=True)
        board.line(x - 5, y + 5, x + 5, y - 5, color=BAD, thick=2)
    else:
        board.dot(x, y, color=RULE if dead else color, radius=4, hollow=dead)


def _below(board: Board, y: float, story: _Story) -> float:
    """The words under the lines; where they end."""
    letters = letters_in(WIDTH - 2 * MARGIN)
    for words, lost in story.told:
        board.text(MARGIN, y, cut(words, letters), color=BAD if lost else DIM)
        y += _ROW
    y += 6
    for head, color, lines in (("left", GOOD, story.left), ("gone", DOUBT, story.gone)):
        for at, line in enumerate(lines):
            if at == 0:
                board.pill(MARGIN, y, head, color=color, wide=54)
            board.text(MARGIN + 66, y, cut(line, letters - 9))
            y += _ROW + 2
    return y


@dataclass(frozen=True)
class _Story:
    """What is told in words."""

    marks: Sequence[Mark]
    crash: int
    crash_text: str
    left: Sequence[str]
    gone: Sequence[str]

    @property
    def lanes(self) -> list[str]:
        return list(dict.fromkeys(mark.lane for mark in self.marks))

    @property
    def told(self) -> list[tuple[str, bool]]:
        """The marks in words, those last before the crash: few enough to read."""
        before = [mark for mark in self.marks if mark.at <= self.crash and mark.text]
        named = len(self.lanes) > 1
        earlier = [(f"the last {_TOLD} of {len(before)}:", False)] if len(before) > _TOLD else []
        return earlier + [
            (f"{mark.at} " + f"{mark.lane}: " * named + mark.text + "  LOST" * mark.lost, mark.lost)
            for mark in before[-_TOLD:]
        ]

    def text(self) -> str:
        """The twin in ASCII."""
        names = max(len(cut(each, _NAME)) for each in [*self.lanes, "crash"]) + 2
        lines = []
        for at, lane in enumerate(self.lanes):
            row = [" "] * (max(mark.at for mark in self.marks) + 1)
            for mark in self.marks:
                if mark.lane == lane:
                    row[mark.at] = "!" if mark.lost else "." if mark.at > self.crash else _SIGNS[at % 4]
            lines.append(f"  {cut(lane, _NAME):{names}} {''.join(row)}".rstrip())
        lines += [f"  {'crash':{names}} {' ' * self.crash}X {plain(self.crash_text)}", ""]
        lines += [f"  {plain(words)}" for words, _ in self.told]
        for head, more in (("left", self.left), ("gone", self.gone)):
            lines += [""] * bool(more)
            lines += [f"  {head * (at == 0):{names}} {plain(line)}" for at, line in enumerate(more)]
        return "\n".join(lines)


def timeline_of(title: str, finding: Finding) -> Picture:
    """The last ops before the crash of a finding of crashlab; those that a power loss took are crossed out."""
    ops = [op for op in finding.ops if op.run == 0]
    marks = [
        Mark(at, "files" if op.path else "told", steady(f"{op.op} {op.text}".strip()), lost=op.note == "lost")
        for at, op in enumerate(ops, start=1)
    ]
    left = [steady(f"{line.path}  {line.bytes:,} bytes  {line.state}".rstrip()) for line in finding.disk]
    observed = finding.observed
    left.append(steady(f"recovery: {observed.error or observed.how}"))
    return timeline(title, marks, crash=len(marks), crash_text=finding.fault_line, left=left)
