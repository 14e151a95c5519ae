"""The crash matrix: where in the run a crash came out well, and where not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crashlab.kinds import gravity
from crashlab.report import model

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from crashlab.crash.places import Places
    from crashlab.rounds import Spot

_AT_AN_OP = {"power": "power", "error": "error", "recovery": "nested"}
"""The columns of the crash matrix that belong to an op as a whole, by fault."""
_RANK = ("", "consistent", "refused", "unmeasured", "violation")


def matrix(
    tried: Sequence[tuple[Mapping[str, tuple[str, str]], Sequence[Spot]]], places: Places
) -> tuple[model.MatrixRow, ...]:
    """The crash matrix: per span of ops the worst verdict before, inside and after it, and of the other faults there.

    ``tried`` has, per fault, the verdict and kind of each digest, and where all states stand, equal ones
    included.
    """
    spans = places.spans()
    cells: list[dict[str, str]] = [dict.fromkeys(("before", "inside", "after", *_AT_AN_OP.values()), "") for _ in spans]
    kinds: list[set[str]] = [set() for _ in spans]
    counts = [0] * len(spans)
    starts = {span.first - 1: position for position, span in enumerate(spans)}
    ends = {span.last: position for position, span in enumerate(spans)}
    of_op = [position for position, span in enumerate(spans) for _ in range(span.first, span.last + 1)]
    for judged, spots in tried:
        for spot in spots:
            if spot.digest not in judged:
                continue
            verdict, kind = judged[spot.digest]
            for position, column in _cells_of(spot, starts, ends, of_op):
                cell = cells[position]
                cell[column] = max(cell[column], verdict, key=_RANK.index)
                counts[position] += column != "before"
                if verdict == "violation" and column != "before":
                    kinds[position].add(kind)
    return tuple(
        model.MatrixRow(
            place=span.name or "other",
            first_op=span.first,
            last_op=span.last,
            states=count,
            kinds=tuple(sorted(found, key=gravity)),
            **cell,
        )
        for span, cell, found, count in zip(spans, cells, kinds, counts, strict=True)
    )


def _cells_of(spot: Spot, starts: dict[int, int], ends: dict[int, int], of_op: list[int]) -> list[tuple[int, str]]:
    if spot.fault == "damage":
        return []  # no op was under way
    if spot.fault in _AT_AN_OP:
        return [(of_op[max(spot.done - 1, 0)], _AT_AN_OP[spot.fault])] if of_op else []
    if spot.cut:
        return [(of_op[spot.done], "inside")]
    found = []
    if spot.done in starts:
        found.append((starts[spot.done], "before"))
    if spot.done in ends:
        found.append((ends[spot.done], "after"))
    elif spot.done and spot.done not in starts:
        found.append((of_op[spot.done - 1], "inside"))
    return found
