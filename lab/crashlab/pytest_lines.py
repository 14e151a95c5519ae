"""One line per check, for the summary of a test run: what it came to, of how many states, and where the rest lies.

A property-based test makes hundreds of checks; those of one test that came to the same are one line.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crashlab.report.model import Report

WORDS = {"consistent": "PASS", "violation": "VIOLATION", "unmeasured": "UNMEASURED"}


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What is kept of a report: enough for a line, and small, since a test may make many."""

    name: str
    verdict: str
    about: str
    states: int
    seconds: float
    run: str

    @classmethod
    def of(cls, report: Report) -> Self:
        """What is to be kept of this report."""
        about = ""
        if report.verdict == "violation":
            first = report.findings[0]
            about = f"{first.kind} [{first.id}]"
            if len(report.findings) > 1:
                about += f" and {len(report.findings) - 1} more"
        elif report.verdict == "unmeasured":
            about = ", ".join(dict.fromkeys(reason.code for reason in report.unmeasured))
        if report.accepted:
            about = ", ".join(part for part in (about, f"{len(report.accepted)} accepted") if part)
        return cls(
            name=report.subject.name,
            verdict=report.verdict,
            about=about,
            states=sum(each.judged - each.known for each in report.faults),
            seconds=report.seconds,
            run=report.run,
        )


def lines_of(seen: Sequence[Seen], test: str) -> list[str]:
    """A line for each check of one test, those that came to the same together, in the order of their ends.

    >>> one = Seen(name="t.py::test_a", verdict="consistent", about="", states=40, seconds=0.5, run=".crashlab/runs/1")
    >>> lines_of([one, one], "t.py::test_a")
    ['PASS  2 checks, 80 crash states, 1.0 s, the last in .crashlab/runs/1']
    >>> lines_of([one], "t.py::test_b")
    ['PASS  t.py::test_a: 40 crash states, 0.5 s, .crashlab/runs/1']
    """
    groups: dict[tuple[str, str, str], list[Seen]] = {}
    for each in seen:
        groups.setdefault((each.name, each.verdict, each.about), []).append(each)
    return [_line(group, test) for group in groups.values()]


def _line(group: Sequence[Seen], test: str) -> str:
    last, number = group[-1], len(group)
    states = sum(each.states for each in group)
    parts = [last.about] if last.about else []
    parts += [f"{number:,} checks"] if number > 1 else []
    parts += [f"{states:,} crash {'state' if states == 1 else 'states'}"]
    parts += [f"{sum(each.seconds for each in group):.1f} s"]
    parts += [f"the last in {last.run}" if number > 1 else last.run]
    name = f"{last.name}: " if last.name != test else ""
    return f"{WORDS.get(last.verdict, last.verdict)}  {name}{', '.join(parts)}"
