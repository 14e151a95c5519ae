"""What the points of several lines tell: what is lost, done twice, miscounted, or not as it should be.

Pure: it is asked in the child, of what a recovery has left, and by the judge, of the files that a run has left.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from longrun.messages import canonical

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

State = dict[str, Any]
MAIN = "main"
FORK = "other"
POINTS = "points"
FORKS = "forks"
_TYPES = {
    "seq": int,
    "turns": int,
    "tokens_used": int,
    "requests_started": int,
    "timeline": str,
    "status": str,
    "messages": list,
    "pending": list,
}
_NEVER_FALL = ("tokens_used", "requests_started")


@dataclass(frozen=True)
class Plan:
    """To the end of which turn one goes back, which is the last, and when a case is opened and mails are sent."""

    back_to: int = 4
    last: int = 6
    case_at: int = 3
    mails_at: int = 5


LONG = Plan()
SHORT = Plan(back_to=1, last=3, case_at=0, mails_at=2)
"""Enough where a run and its fork are at work at the same time."""


def digest(state: Any) -> str:
    """What tells two points apart."""
    return hashlib.sha256(canonical(state).encode()).hexdigest()


def files_in(run: Path) -> dict[str, bytes]:
    """The points of all lines, by path."""
    found = [*run.glob(f"{POINTS}/*.json"), *run.glob(f"{FORKS}/*/{POINTS}/*.json")]
    return {str(path.relative_to(run)): path.read_bytes() for path in found}


def points_of(files: Mapping[str, bytes]) -> dict[str, list[State]]:
    """The whole points by the name of their line, in the order of their numbers, wherever they lie."""
    lines: dict[str, list[State]] = {}
    for data in files.values():
        with contextlib.suppress(ValueError, RecursionError):  # what is no point is nothing that anybody promised
            point = json.loads(data)
            if isinstance(point, dict) and all(type(point.get(name)) is kind for name, kind in _TYPES.items()):
                lines.setdefault(point["timeline"].partition("@")[0], []).append(point)
    return {name: sorted(points, key=lambda point: point["seq"]) for name, points in lines.items()}


def lost(files: Mapping[str, bytes], promised: Iterable[str]) -> str:
    """Which promised point is no longer there as it was; nothing where all are."""
    there = {digest(point) for points in points_of(files).values() for point in points}
    missing = [each for each in promised if each not in there]
    return f"{len(missing)} points that were saved are no longer there as they were" if missing else ""


def twice(acts: Iterable[str]) -> str:
    """Which act was done more than once; nothing where none was."""
    again = [act for act, times in Counter(acts).items() if times > 1]
    return f"{again[0]} was done twice" if again else ""


def miscounted(lines: Mapping[str, list[State]], requests: int, *, rewound: bool) -> str:
    """Which counter is wrong about the points of all lines; nothing where all are right."""
    counted = 0
    for name, points in lines.items():
        for before, point in pairwise(points):
            for counter in _NEVER_FALL:
                if point[counter] < before[counter]:
                    return f"{name}: {counter} fell from {before[counter]} to {point[counter]} at point {point['seq']}"
        counted += points[-1]["requests_started"] - (points[0]["requests_started"] if name == FORK else 0)
    if rewound:  # there the main line is over when the fork is made
        for counter in _NEVER_FALL:
            if lines[FORK][0][counter] < lines[MAIN][-1][counter]:
                return (
                    f"the fork begins with {lines[FORK][0][counter]} {counter}, the run had {lines[MAIN][-1][counter]}"
                )
    if requests > counted:
        return f"the server counts {requests} requests, the points {counted}"
    return ""


def unlike(lines: Mapping[str, list[State]], *, plan: Plan = LONG, rewound: bool = True) -> str:
    """What is wrong about the lines at the end; nothing where all is as it should be."""
    main, fork = lines.get(MAIN, []), lines.get(FORK, [])
    for name, points in ((MAIN, main), (FORK, fork)):
        if not points:
            return f"there is no point of the line {name!r}; expected some whose timeline is {name!r}"
        seqs = [point["seq"] for point in points]
        if seqs != sorted(set(seqs)):
            return f"{name}: two points have one number"
        if points[-1]["status"] != "done" or points[-1]["turns"] != plan.last:
            head = points[-1]
            return (
                f"the newest point of {name} is {head['status']} at turn {head['turns']}, expected done at {plan.last}"
            )
    again = [point for point in main if point["timeline"] != MAIN]
    if rewound and not again:
        return f"all points are of the timeline {MAIN!r}: no rewind has added one of another, such as main@9"
    copies = [(MAIN, again[0])] if rewound else []
    for name, copy in [*copies, (FORK, fork[0])]:
        target = [point for point in main if point["seq"] == copy.get("parent") and point["turns"] == plan.back_to]
        if not target or target[0]["messages"] != copy["messages"] or copy["pending"]:
            return f"{name}: point {copy['seq']} is no copy of a parent at the end of turn {plan.back_to}"
    return ""


def broken(  # noqa: PLR0913 - all that is known of an end
    files: Mapping[str, bytes],
    promised: Iterable[str],
    acts: Iterable[str],
    requests: int,
    *,
    plan: Plan = LONG,
    rewound: bool = True,
) -> dict[str, str]:
    """What is wrong about an end, by the lab's kind, gravest first; empty texts where nothing is."""
    lines = points_of(files)
    odd = unlike(lines, plan=plan, rewound=rewound)
    return {
        "duplicate-effect": twice(acts),
        "lost": lost(files, promised),
        "diverged": odd,
        "guard-bypassed": "" if odd else miscounted(lines, requests, rewound=rewound),
    }
