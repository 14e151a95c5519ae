"""The tables of the terminal view: the crash matrix, the count of each fault, several subjects side by side.

The crash matrix has a row per save point, effect or group of ops, and a cell per place where the crash
can fall: a kill before it, inside it, after it, and a loss of power at it. A cell shows its worst
verdict as a letter and as a colour, so that it reads the same without colours. Runs of rows that say the
same are folded into one line.
"""

from __future__ import annotations

from collections import Counter
from itertools import groupby
from typing import TYPE_CHECKING

from crashlab.report.page import Page, count, duration

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from crashlab.report.model import FaultCount, MatrixRow, Report
    from crashlab.report.page import Part

LETTERS: dict[str, str] = {"consistent": "·", "refused": "r", "violation": "V", "unmeasured": "?", "": ""}
WORDS: dict[str, str] = {
    "consistent": "PASS",
    "violation": "VIOLATION",
    "unmeasured": "UNMEASURED",
    "refused": "refused",
}
ROLES: dict[str, str] = {
    "consistent": "pass",
    "violation": "violation",
    "unmeasured": "unmeasured",
    "refused": "refused",
}
"""Verdict to the role of its word in colours."""

_PLACE_WIDTH, _OPS_WIDTH = 34, 11
_FOLD_FROM, _ROWS_AT_MOST = 4, 40
_CELL_WIDTH = 7
_COLUMNS = ("before", "inside", "after", "power")


def crash_matrix(page: Page, rows: Sequence[MatrixRow]) -> None:
    """Add the matrix and the key to its letters; nothing where there are no rows."""
    if not rows:
        return
    lines = list(folded(rows))
    shown = lines[:_ROWS_AT_MOST]
    place = page.columns([row.place for row in shown if not isinstance(row, str)] + ["crash in"], _PLACE_WIDTH)
    columns = [column for column in _COLUMNS if any(getattr(row, column) for row in rows)]
    head = f"  {'crash in'.ljust(place)}  {'ops'.ljust(_OPS_WIDTH)}" + "".join(f"  {each:^6}" for each in columns)
    page.line((f"{head}  {'states':>7}", "label"))
    for row in shown:
        if isinstance(row, str):
            page.line("  ", (row, "dim"))
        else:
            page.line(*_matrix_row(page, row, place, columns))
    if len(lines) > len(shown):
        page.line("  ", (f"… {len(lines) - len(shown)} more lines: crashlab show --json", "dim"))
    page.line("  ", *_key(rows))


def _matrix_row(page: Page, row: MatrixRow, place: int, columns: Sequence[str]) -> list[Part]:
    ops = str(row.first_op) if row.first_op == row.last_op else f"{row.first_op}-{row.last_op}"
    cells: list[Part] = ["  ", page.padded(row.place, place), "  ", (page.padded(ops, _OPS_WIDTH), "dim")]
    for verdict in (getattr(row, column) for column in columns):
        role = "consistent" if verdict == "consistent" else ROLES.get(verdict, "dim")
        cells += ["  ", (LETTERS.get(verdict, "?").center(6), role)]
    cells += [f"  {row.states:>7,}"]
    if row.kinds:
        cells += ["   ", (", ".join(row.kinds), "fault")]
    return cells


def folded(rows: Sequence[MatrixRow]) -> Iterator[MatrixRow | str]:
    """Rows, with the middle of every long run of rows that say the same as one line of text."""
    for (says, *_), run in groupby(rows, key=_says):
        members = list(run)
        if len(members) < _FOLD_FROM:
            yield from members
            continue
        inner = members[1:-1]
        states = sum(row.states for row in inner)
        yield members[0]
        told = f" ({count(states, 'state')})" if states else ""
        yield f"… {len(inner)} more, {says}{told}"
        yield members[-1]


def _says(row: MatrixRow) -> tuple[object, ...]:
    """What a row has in common with its like: first the words for many of them, then what must be equal."""
    cells = tuple(getattr(row, column) for column in _COLUMNS)
    if row.kinds or not {*cells} <= {"consistent", ""}:
        return "like the one above", cells, row.kinds
    # A row without a state must never count as consistent: a budget ran out before it, or nobody asked.
    return ("all consistent",) if row.states else ("not tried",)


def _key(rows: Sequence[MatrixRow]) -> list[Part]:
    used = {getattr(row, column) for row in rows for column in _COLUMNS}
    parts: list[Part] = []
    for verdict, letter in LETTERS.items():
        if verdict and verdict in used:
            role = "consistent" if verdict == "consistent" else ROLES[verdict]
            parts += [(letter, role), (f" {verdict}   ", "dim")]
    return parts


# --- faults --------------------------------------------------------------------------------------


def fault_table(page: Page, faults: Sequence[FaultCount]) -> None:
    """Add one line per fault: places, states, and what became of the distinct ones."""
    names, values = fault_columns(faults)
    width = max(page.columns([each.fault for each in faults], 24), len("fault"))
    if 2 + width + sum(2 + _column(name) for name in names) > page.width:  # a number must never be cut
        for each, row in zip(faults, values, strict=True):
            told = zip(names, row, strict=True)
            page.labelled(each.fault, ", ".join(f"{name} {number:,}" for name, number in told))
        return
    page.line(("  " + "fault".ljust(width) + "".join(f"  {name:>{_column(name)}}" for name in names), "label"))
    for each, row in zip(faults, values, strict=True):
        parts: list[Part] = ["  ", page.padded(each.fault, width)]
        for name, number in zip(names, row, strict=True):
            role = {"violations": "violation", "unmeasured": "unmeasured"}.get(name, "") if number else ""
            parts.append((f"  {number:>{_column(name)},}", role))
        page.line(*parts)


def fault_columns(faults: Sequence[FaultCount]) -> tuple[list[str], list[list[int]]]:
    """The names of the columns, and per fault its numbers; columns of nothing but zeros are left out."""
    names = ["points", "states", "distinct", "cuts", "consistent", "refused", "violations"]
    values = [
        [each.points, each.states, each.distinct, each.inside, each.consistent, each.refused, each.violation]
        for each in faults
    ]
    for name in ("unmeasured", "sampled", "skipped"):
        more = [getattr(each, name) for each in faults]
        if any(more):
            names.append(name)
            values = [[*row, number] for row, number in zip(values, more, strict=True)]
    return names, values


def _column(name: str) -> int:
    return max(len(name), 7)


# --- several subjects ----------------------------------------------------------------------------


def comparison(page: Page, reports: Sequence[Report]) -> None:
    """Add one line per subject: verdict, per fault its worst verdict and how many states, time, findings by kind."""
    name = max(page.columns([report.subject.name for report in reports], 40), len("subject"))
    faults = list(dict.fromkeys(each.fault for report in reports for each in report.faults))
    widths = {fault: max(len(fault), _CELL_WIDTH) for fault in faults}
    heads = "".join(f"  {fault:>{widths[fault]}}" for fault in faults)
    page.line((f"{'subject'.ljust(name)}  verdict   {heads}  {'cuts':>5}  {'time':>7}  findings", "label"))
    for report in reports:
        counts = {each.fault: each for each in report.faults}
        cells = [_fault_cell(counts.get(fault), widths[fault]) for fault in faults]
        page.line(
            page.padded(report.subject.name, name),
            "  ",
            (WORDS[report.verdict].ljust(10), ROLES[report.verdict]),
            *cells,
            f"  {sum(each.inside for each in report.faults):>5,}  {duration(report.seconds):>7}  ",
            (by_kind(report), "fault" if report.findings else "dim"),
        )


def _fault_cell(count_of: FaultCount | None, width: int) -> Part:
    """The worst verdict of one fault as a letter, and how many states were judged."""
    if count_of is None:
        return "  " + " " * width
    worst = next((name for name in ("violation", "unmeasured", "refused", "consistent") if getattr(count_of, name)), "")
    text = f"{LETTERS[worst]} {count_of.judged:,}".rjust(width)
    return f"  {text}", ROLES["consistent"] if worst == "consistent" else ROLES.get(worst, "dim")


def by_kind(report: Report) -> str:
    """How many findings of each kind, and why something was unmeasured: ``2 stuck``."""
    kinds = Counter(finding.kind for finding in report.findings)
    words = [f"{number} {kind}" for kind, number in kinds.items()]
    words += [f"{len(report.accepted)} accepted"] if report.accepted else []
    words += [f"unmeasured: {code}" for code in dict.fromkeys(reason.code for reason in report.unmeasured)]
    return ", ".join(words) or "none"
