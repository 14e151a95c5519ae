"""The crash time line: where things stand on it, in units of its drawing and in words.

Ops run along the axis. Above it stand the save points, the effects and the acks; below it, per kind of
crash, a bar of the worst verdict at each place; below that a flag per finding. A bar shows its verdict
by its height and pattern too, so that it reads without colours. Many ops share a bin of the drawing; a
bin shows the worst of them, so that nothing is hidden by the scale. :meth:`Timeline.words` says the same.

Not shown: which state of a place it was, and damage at rest, during which no op is under way.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from crashlab.report.model import Finding, MatrixRow, Moment, Report

LEFT, WIDTH, BIN = 96.0, 888.0, 2.0
"""Where the axis begins, how long it is, and the narrowest bar."""
RANK = ("", "consistent", "refused", "unmeasured", "violation")
HEIGHTS = {"consistent": 6, "refused": 12, "unmeasured": 18, "violation": 24}
_LANES = (("effect", "effects"), ("ack", "acks"), ("save point", "save points"))
_TICKS, _FLAGS_AT_MOST, _FLAG_ROWS, _FLAG_GAP = 12, 60, 3, 17.0
_LETTER_WIDTH, _NUMBERS_TOLD = 11.0, 40


@dataclass(frozen=True)
class Mark:
    """One moment: where it stands, and what it says when pointed at."""

    x: float
    title: str


@dataclass(frozen=True)
class Bar:
    """A run of places with one worst verdict; ``letter`` is empty where there is no room for it."""

    x: float
    width: float
    verdict: str
    height: int
    letter: str
    title: str


@dataclass(frozen=True)
class Flag:
    """A finding: its number on the page, where it crashed, in which row of flags it stands."""

    x: float
    row: int
    number: int
    id: str
    n: int


@dataclass(frozen=True)
class Timeline:
    """Everything that is drawn. ``marks`` and ``bars`` have a lane per name, top to bottom."""

    ops: int
    ticks: tuple[tuple[float, int], ...]
    marks: tuple[tuple[str, tuple[Mark, ...]], ...]
    bars: tuple[tuple[str, tuple[Bar, ...]], ...]
    flags: tuple[Flag, ...]
    words: tuple[tuple[str, str], ...]

    @property
    def flag_rows(self) -> int:
        """How many rows of flags there are."""
        return max((flag.row + 1 for flag in self.flags), default=0)


def timeline_of(report: Report, numbers: Collection[int], *, bin_width: float = BIN) -> Timeline | None:
    """The time line of ``report``, with flags for the findings of these numbers; None where its ops are unknown."""
    ops = max([report.trace.ops, *(row.last_op for row in report.matrix)])
    if ops == 0 or not report.matrix:
        return None
    told = {each.n for each in report.moments}
    lanes = [(name, _worst(report.matrix, name, told)) for name in ("kill", "power", "error", "nested")]
    lanes = [(name, verdicts) for name, verdicts in lanes if any(verdict for _, _, verdict in verdicts)]
    flags = tuple(_flags(report.findings, numbers, ops))
    words = [(label, _numbers([each.n for each in report.moments if each.op == op])) for op, label in _LANES]
    words += [(name, _verdict_words(verdicts)) for name, verdicts in lanes]
    words += [(f"finding {flag.number}", f"{flag.id}, at op {flag.n}") for flag in flags]
    return Timeline(
        ops=ops,
        ticks=tuple((_x(n, ops), n) for n in _ticks(ops)),
        marks=tuple(
            (label, lane) for op, label in _LANES if (lane := tuple(_marks(report.moments, op, ops, bin_width)))
        ),
        bars=tuple((name, tuple(_bars(verdicts, ops, bin_width))) for name, verdicts in lanes),
        flags=flags,
        words=tuple(each for each in words if each[1]),
    )


def crash_op(finding: Finding) -> int:
    """The op of the recorded run at which the finding crashed first; 0 where none was under way."""
    return max((op.n for op in finding.ops if op.run == 0), default=0)


def _x(n: float, ops: int) -> float:
    """The middle of op ``n``."""
    return round(LEFT + WIDTH * (n - 0.5) / ops, 1)


def _ticks(ops: int) -> list[int]:
    step = next(
        (step for power in range(12) for digit in (1, 2, 5) if ops / (step := digit * 10**power) <= _TICKS), ops
    )
    found = [1, *range(step, ops + 1, step)]
    return sorted({n for n in found if ops - n >= step / 2 or n == 1} | {ops})


def _marks(moments: Sequence[Moment], op: str, ops: int, unit: float) -> Iterable[Mark]:
    """One mark per bin; its title names all that stand there."""
    chosen = [each for each in moments if each.op == op]
    for x, group in groupby(chosen, key=lambda each: round(round(_x(each.n, ops) / unit) * unit, 1)):
        members = list(group)
        more = f" and {len(members) - 1} more" if len(members) > 1 else ""
        yield Mark(x, f"op {members[0].n}: {op} {members[0].text}{more}")


# --- bars ----------------------------------------------------------------------------------------


def _worst(matrix: Sequence[MatrixRow], lane: str, told: Collection[int]) -> list[tuple[int, int, str]]:
    """Per row its first and last op, and the worst verdict of a crash there.

    A kill after the last op of a row has a verdict of its own. It is that op's where this is one of the ``told``
    moments, which write nothing that could be cut.
    """
    if lane != "kill":
        return [(row.first_op, row.last_op, getattr(row, lane)) for row in matrix]
    found = []
    for position, row in enumerate(matrix):
        # Just before a row is just after the one before it, which has it already.
        cells = (row.inside,) if position else (row.before, row.inside)
        if row.first_op < row.last_op and row.last_op in told:
            found.append((row.first_op, row.last_op - 1, max(cells, key=RANK.index)))
            found.append((row.last_op, row.last_op, row.after))
        else:
            found.append((row.first_op, row.last_op, max(*cells, row.after, key=RANK.index)))
    return found


def _bars(verdicts: Sequence[tuple[int, int, str]], ops: int, unit: float) -> Iterable[Bar]:
    bins = [""] * math.ceil(WIDTH / unit)
    for first, last, verdict in verdicts:
        start = int(WIDTH * (first - 1) / ops / unit)
        stop = max(math.ceil(WIDTH * last / ops / unit - 1e-9), start + 1)
        for position in range(start, min(stop, len(bins))):
            bins[position] = max(bins[position], verdict, key=RANK.index)
    at = 0
    for verdict, run in groupby(bins):
        length = len(list(run))
        if verdict:
            yield _bar(at * unit, length * unit, verdict, verdicts, ops)
        at += length


def _bar(at: float, length: float, verdict: str, verdicts: Sequence[tuple[int, int, str]], ops: int) -> Bar:
    width = min(length, WIDTH - at)
    first = int(at * ops / WIDTH + 1e-9) + 1
    last = max(first, math.ceil((at + length) * ops / WIDTH - 1e-9))
    rows = sum(a <= last and b >= first and each == verdict for a, b, each in verdicts)
    title = f"{verdict} at ops {first} to {min(last, ops)}, worst of {rows} places"
    letter = verdict[0].upper() if width >= _LETTER_WIDTH and verdict == "violation" else ""
    return Bar(round(LEFT + at, 1), width, verdict, HEIGHTS[verdict], letter, title)


# --- flags and words -------------------------------------------------------------------------------


def _flags(findings: Sequence[Finding], numbers: Collection[int], ops: int) -> Iterable[Flag]:
    """A flag per finding from left to right, each in the first row in which it overlaps no other, if there is one."""
    placed = sorted(
        (n, number, findings[number - 1].id)
        for number in sorted(numbers)[:_FLAGS_AT_MOST]
        if 0 < (n := crash_op(findings[number - 1])) <= ops
    )
    ends = [-math.inf] * _FLAG_ROWS
    for n, number, name in placed:
        x = _x(n, ops)
        row = next((row for row in range(_FLAG_ROWS) if ends[row] + _FLAG_GAP <= x), None)
        if row is None:
            continue  # one on top of another could not be read; the list above has it, and so has the page
        ends[row] = x
        yield Flag(x, row, number, name, n)


def _numbers(numbers: Sequence[int]) -> str:
    some = ", ".join(str(n) for n in numbers[:_NUMBERS_TOLD])
    more = f" and {len(numbers) - _NUMBERS_TOLD} more" if len(numbers) > _NUMBERS_TOLD else ""
    return f"{'op' if len(numbers) == 1 else 'ops'} {some}{more}" if numbers else ""


def _verdict_words(verdicts: Sequence[tuple[int, int, str]]) -> str:
    """``violation at ops 1-6, 9-15; consistent at ops 7-8``, the worst first."""
    told = []
    for verdict in reversed(RANK[1:]):
        runs = _runs(verdicts, verdict)
        some = ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in runs[:_NUMBERS_TOLD])
        more = f" and {len(runs) - _NUMBERS_TOLD} more stretches" if len(runs) > _NUMBERS_TOLD else ""
        told += [f"{verdict} at ops {some}{more}"] if runs else []
    return "; ".join(told)


def _runs(verdicts: Sequence[tuple[int, int, str]], verdict: str) -> list[tuple[int, int]]:
    runs: list[tuple[int, int]] = []
    for first, last, each in verdicts:
        if each != verdict:
            continue
        if runs and runs[-1][1] + 1 >= first:
            runs[-1] = (runs[-1][0], last)
        else:
            runs.append((first, last))
    return runs
