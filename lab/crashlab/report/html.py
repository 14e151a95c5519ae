"""The HTML view: one page that opens from the disk, asks nothing of any network, and needs no script.

Verdict first; then what was tried, where it crashed, and each finding. It is made from the result model
alone, so ``report.json`` is enough. A page stays below :data:`PAGE_BYTES` whatever the report: of many
findings the gravest of each kind are drawn in full, more are listed, and the rest are counted, with
where to find them. The script only adds comfort (copying, opening all); without it nothing is hidden.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from crashlab import __version__
from crashlab.report.accepted import with_accepted
from crashlab.report.finding import SHAPES
from crashlab.report.finding_view import finding_view
from crashlab.report.page import count, duration
from crashlab.report.sentences import FAULT_WORDS, kind_words, stood_by, verdict_sentence
from crashlab.report.tables import LETTERS, WORDS, by_kind, fault_columns, folded
from crashlab.report.templating import asset, environment, policy, template_module, trusted
from crashlab.report.text import bound_words, control_words, judged, not_asked
from crashlab.report.timeline import BIN, timeline_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from markupsafe import Markup

    from crashlab.report.model import Finding, MatrixRow, Report

PAGE_BYTES = 5_000_000
"""No page is larger: where one would be, it is drawn again with less on it."""

_COLUMNS = ("before", "inside", "after", "power")
_SCREEN_LINES = 30


@dataclass(frozen=True)
class Limits:
    """How much of one report is drawn: findings in full and in brief, links, lines of the matrix, notes."""

    cards: int = 100
    rows: int = 1_000
    jumps: int = 25
    matrix: int = 200
    notes: int = 50
    bin: float = BIN

    def over(self, parts: int) -> Limits:
        """The same page for so many parts, each of which gets at least something."""
        numbers = (self.cards, self.rows, self.jumps, self.matrix, self.notes)
        cards, rows, jumps, matrix, notes = (max(number // parts, 1) for number in numbers)
        unit = min(self.bin * max(parts / 8, 1), 44.0)
        return Limits(cards=cards, rows=rows, jumps=jumps, matrix=matrix, notes=notes, bin=unit)


REPORTS_AT_MOST = 100
_TRIES = (1, 4, 16, 64, 256, 1024)


def render_html(reports: Sequence[Report]) -> str:
    """A whole page for one report, or for several with a table of them at the top.

    Raises ValueError for no report at all, which would be a page that looks like a pass.
    """
    if not reports:
        text = "there is no report to draw"
        raise ValueError(text)
    page, believed = "", [stood_by(report) for report in reports]
    for parts in _TRIES:
        page = _page(believed, parts)
        if len(page.encode()) <= PAGE_BYTES:
            break
    return page


def _page(reports: Sequence[Report], parts: int) -> str:
    drawn = reports[: max(REPORTS_AT_MOST // parts, 1)]
    limits = Limits().over(parts * len(drawn))
    views = [report_view(report, f"r{n}", limits, opened=len(drawn) == 1) for n, report in enumerate(drawn, start=1)]
    script, style = asset("page.js"), asset("page.css")
    template = environment().get_template("page.html.j2")
    return template.render(
        views=views,
        title=_title(reports),
        version=__version__,
        policy=policy(script, style),
        css=trusted(style),
        js=trusted(script),
        footer=_footer(len(reports), len(drawn)),
    )


def _title(reports: Sequence[Report]) -> str:
    if len(reports) > 1:
        return f"crashlab: {len(reports)} subjects"
    return f"{WORDS[reports[0].verdict]} {reports[0].subject.name[:80]} - crashlab"


def _footer(reports: int, drawn: int) -> str:
    more = f" {count(reports - drawn, 'more report')} are not on it." if reports > drawn else ""
    return f"Made by crashlab {__version__} from report.json alone; this page loads nothing.{more}"


# --- one report ------------------------------------------------------------------------------------


def report_view(report: Report, key: str, limits: Limits, *, opened: bool) -> dict[str, Any]:
    """Everything that the templates ask for of one report. ``opened``: its first finding is unfolded."""
    cards = _cards(report, key, limits.cards, opened=opened)
    groups, hidden = _groups(report, cards, limits.rows)
    jumps = [_jump(key, number, report.findings[number - 1]) for number in sorted(cards)][: limits.jumps]
    lines = list(folded(report.matrix))
    failed = [control_words(control) for control in report.controls if not control.passed]
    passed = [control_words(control) for control in report.controls if control.passed]
    names, counts = _counts(report)
    return {
        "report": report,
        "key": key,
        "word": f"{LETTERS[report.verdict].replace('·', '✓')} {WORDS[report.verdict]}{with_accepted(report)}",
        "sentence": verdict_sentence(report),
        "about": _about(report),
        "judged": judged(report),
        "inside": sum(each.inside for each in report.faults),
        "seconds": duration(report.seconds),
        "by_kind": by_kind(report),
        "jumps": jumps,
        "not_jumped": len(report.findings) - len(jumps),
        "reasons": report.unmeasured[: limits.notes],
        "notes": _some(report.notes, limits.notes),
        "count_names": names,
        "counts": counts,
        "bound": bound_words(report),
        "controls": f"{len(passed)} of {len(report.controls)}: {', '.join(passed)}",
        "failed_controls": failed[: limits.notes],
        "not_asked": not_asked(report),
        "timeline": timeline_of(report, cards, bin_width=limits.bin),
        "columns": [name for name in _COLUMNS if any(getattr(row, name) for row in report.matrix)],
        "matrix": lines[: limits.matrix],
        "matrix_hidden": len(lines[limits.matrix :]),
        "matrix_key": _matrix_key(report.matrix),
        "matrix_open": report.verdict != "consistent" and len(lines) <= _SCREEN_LINES,
        "groups": groups,
        "hidden": hidden,
        "facts": [each for each in _facts(report) if each[1]],
    }


def _about(report: Report) -> str:
    shape = SHAPES.get(report.subject.kind, report.subject.kind)
    return " · ".join(each for each in (shape, report.subject.source, report.created) if each)


def _counts(report: Report) -> tuple[list[str], list[dict[str, Any]]]:
    names, rows = fault_columns(report.faults)
    counts = [
        {
            "name": each.fault,
            "numbers": list(zip(names, row, strict=True)),
            "words": FAULT_WORDS.get(each.fault, ""),
        }
        for each, row in zip(report.faults, rows, strict=True)
    ]
    return names, counts


def _matrix_key(rows: Sequence[MatrixRow]) -> str:
    used = {getattr(row, column) for row in rows for column in _COLUMNS}
    return ", ".join(f"{letter} {verdict}" for verdict, letter in LETTERS.items() if verdict and verdict in used)


def _facts(report: Report) -> Iterator[tuple[str, str]]:
    asked = report.settings
    yield "faults", ", ".join(asked.faults)
    yield "profile", ", ".join(asked.profile)
    yield "real disk", asked.disk
    yield "seed", str(asked.seed)
    yield "budget", ", ".join(f"{name} {value}" for name, value in asked.budget.items())
    for fault, wanted in asked.policy.items():
        yield f"policy {fault}", ", ".join(f"{name} {value}" for name, value in wanted.items())
    yield "recorder", asked.recorder
    yield "recovery", asked.recovery
    yield from report.versions.items()
    trace = report.trace
    told = [count(trace.ops, "op"), count(trace.effects, "effect"), count(trace.acks, "ack")]
    yield "trace", ", ".join([*told, count(trace.save_points, "save point")]) + f"; digest {trace.digest}"
    yield "run", report.run
    yield "took", duration(report.seconds)


def _some(texts: Sequence[str], number: int) -> list[str]:
    hidden = len(texts) - number
    return [*texts[:number], *([f"{hidden:,} more notes are in report.json"] if hidden > 0 else [])]


# --- findings --------------------------------------------------------------------------------------


def _by_kind(report: Report) -> dict[str, list[int]]:
    """The numbers of the findings per kind, in the order of the report: gravest first."""
    kinds: dict[str, list[int]] = {}
    for number, finding in enumerate(report.findings, start=1):
        kinds.setdefault(finding.kind, []).append(number)
    return kinds


def _cards(report: Report, key: str, at_most: int, *, opened: bool) -> dict[int, Markup]:
    """By number the findings drawn in full: the first of each kind, then the second of each, while there is room."""
    draw = template_module("finding.html.j2").finding
    turns = zip_longest(*_by_kind(report).values())
    numbers = [number for turn in turns for number in turn if number is not None][:at_most]
    return {
        number: draw(
            finding_view(
                report.findings[number - 1],
                report.subject,
                key=f"{key}f{number}",
                number=number,
                opened=opened and number == 1,
            )
        )
        for number in numbers
    }


def _groups(report: Report, cards: Mapping[int, Markup], at_most: int) -> tuple[list[dict[str, Any]], int]:
    """The findings by kind: cards, and findings in brief; and how many are neither."""
    kinds = _by_kind(report)
    groups, hidden = [], 0
    for kind, numbers in kinds.items():
        rest = [report.findings[number - 1] for number in numbers if number not in cards]
        rows = rest[: max(at_most // len(kinds), 1)]
        hidden += len(rest) - len(rows)
        drawn = [cards[number] for number in numbers if number in cards]
        groups.append({"kind": kind, "words": kind_words(kind), "total": len(numbers), "cards": drawn, "rows": rows})
    return groups, hidden


def _jump(key: str, number: int, finding: Finding) -> dict[str, Any]:
    """A link to a finding that is drawn in full."""
    return {
        "number": number,
        "key": f"{key}f{number}",
        "kind": finding.kind,
        "id": finding.id,
        "summary": finding.summary,
    }
