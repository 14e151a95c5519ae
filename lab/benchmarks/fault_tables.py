"""The tables of a validation, as text that is read on a terminal and stands in lab/FAULT_MODEL.md."""

from __future__ import annotations

import datetime
import platform
from typing import TYPE_CHECKING

from benchmarks.programs import PATTERNS
from benchmarks.validation import Tally, states_in_model

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

BEGIN = "<!-- generated: python -m benchmarks.fault_model --write -->"
END = "<!-- end of what is generated -->"
GROUPS = {"pattern": "patterns", "danger": "dangers", "random": "random programs"}
DANGER_HEAD = ("state", "on", "allowed by", "seen", "images until then")
LIE_HEAD = ("promise", "on", "denies", "pairs outside")


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A Markdown table.

    >>> print(table(("a", "b"), [(1, 2)]))
    |a|b|
    |---|---|
    |1|2|
    """
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"|{'|'.join(str(cell) for cell in line)}|" for line in lines)


def pattern_head(kinds: Sequence[str]) -> tuple[str, ...]:
    """The head of the table of patterns."""
    return "states seen / in the model", *kinds


def total_head(kinds: Sequence[str]) -> tuple[str, ...]:
    """The head of the table of totals."""
    return "looked at", *kinds


def patterns(tallies: Sequence[Tally]) -> str:
    """Per pattern how many different trees were seen, of how many in the model."""
    rows = []
    seen = {tally.kind: 0 for tally in tallies}
    there = dict(seen)
    for name in PATTERNS:
        cells = []
        for tally in tallies:
            number, states = len(tally.seen[name]), states_in_model(tally.kind, name)
            seen[tally.kind] += number
            there[tally.kind] += states
            cells.append(f"{number}/{states}")
        rows.append((name, *cells))
    rows.append(("all patterns", *(f"{seen[kind]}/{there[kind]}" for kind in seen)))
    return table(pattern_head(list(seen)), rows)


def totals(tallies: Sequence[Tally]) -> str:
    """What was looked at, and how much of it lay outside."""
    rows: list[tuple[object, ...]] = []
    for group, words in GROUPS.items():
        rows.append((f"{words}, run", *(f"{tally.programs[group]:,}" for tally in tallies)))
        rows.append((f"{words}, images", *(f"{tally.images[group]:,}" for tally in tallies)))
    rows.append(("all images", *(f"{tally.images.total():,}" for tally in tallies)))
    rows.append(("pairs of moment and tree", *(f"{tally.pairs:,}" for tally in tallies)))
    rows.append(("outside of the model", *(len(tally.outside) for tally in tallies)))
    return table(total_head([tally.kind for tally in tallies]), rows)


def dangers(tallies: Sequence[Tally]) -> str:
    """Which dangers were seen."""
    rows = [
        (each.name, tally.kind, each.rules, "yes" if tally.showings[each.name] else "no", tally.looked[each.name])
        for tally in tallies
        for each in tally.dangers
    ]
    return table(DANGER_HEAD, rows)


def lies(tallies: Sequence[Tally]) -> str:
    """How often each false promise was refuted."""
    rows = [
        (lie.name, tally.kind, lie.rules, f"{tally.refuted[lie.name]:,} of {tally.pairs:,}")
        for tally in tallies
        for lie in tally.lies
    ]
    return table(LIE_HEAD, rows)


def report(tallies: Sequence[Tally], seed: int) -> str:
    """All of it, with where and when."""
    where = f"Linux {platform.release().split('-')[0]} on {platform.machine()}"
    when = datetime.datetime.now(datetime.UTC).date().isoformat()
    images = sum(tally.images.total() for tally in tallies)
    first = f"{where}, {when}, seed {seed}: {images:,} images, {sum(len(each.outside) for each in tallies)} outside."
    parts = (first, patterns(tallies), totals(tallies), dangers(tallies), lies(tallies))
    return "\n\n".join(parts)


def write(page: Path, text: str) -> None:
    """Put ``text`` between the markers of ``page``. Raises ValueError where they are missing."""
    before, begin, rest = page.read_text().partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        complaint = f"{page} has no part between {BEGIN!r} and {END!r}"
        raise ValueError(complaint)
    page.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{after}")
