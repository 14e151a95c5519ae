"""What the terminal shows: verdict first, then the cases, the one finding that matters first, and what to do next.

Plain lines of ASCII; only the verdict is coloured, and only where somebody looks.
"""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from crashcourse.catalog import HINTS, LESSONS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from crashcourse.catalog import Exercise
    from crashcourse.progress import Standing
    from crashcourse.result import Result, Row, Shown

WIDTH = 100
_COLOURS = {"CONSISTENT": "32", "VIOLATION": "31", "UNMEASURED": "33", "JUDGE-ERROR": "31"}
_LABEL = 9
_WORDS = {"pass": "CONSISTENT", "fail": "VIOLATION", "incomplete": "UNMEASURED", "judge-error": "JUDGE-ERROR"}


def listing(exercises: Iterable[Exercise], standings: Mapping[str, Standing]) -> Iterator[str]:
    """All exercises below their lessons, and how far the learner is."""
    lesson = 0
    for exercise in exercises:
        if exercise.lesson != lesson:
            lesson = exercise.lesson
            yield f"L{lesson} {LESSONS[lesson]}"
        standing = standings.get(exercise.slug)
        place = f"{standing.word:8} {standing.best:3}/100" if standing else "-"
        yield f"   {exercise.number} {exercise.slug:18} {exercise.kind:7}  {exercise.effort:6}  {place}".rstrip()


def checked(result: Result, *, replay: str = "", colour: bool = False) -> Iterator[str]:
    """The result of one check."""
    word = _WORDS[result.status]
    twins = "" if any(row.visibility == "private" for row in result.rows) else ", private twins not run"
    shown = f"\x1b[{_COLOURS[word]};1m{word}\x1b[0m" if colour else word
    yield f"{shown}  {result.exercise}  {result.points}/{result.points_max}{twins}"
    width = max((len(row.id) for row in result.rows), default=4)
    for row in result.rows:
        yield f"  {row.id:{width}}  {row.verdict:12} {_states(row)}".rstrip()
    worst = next((row for row in result.rows if row.verdict == "violation"), None)
    unsure = next((row for row in result.rows if row.verdict == "unmeasured"), None)
    if worst is not None:
        yield from _finding(worst)
    elif unsure is not None:
        yield from _line("why", unsure.message or f"{unsure.states} states, at least {unsure.states_min} are needed")
    if result.error:
        yield from _line("why", result.error)
    command = replay or (worst.finding.replay if worst and worst.finding else "")
    if command:
        yield f"  replay  {command}"
    if result.status != "pass":
        yield f"  next    crashcourse hint {result.exercise}"


def _states(row: Row) -> str:
    broken = row.verdicts.get("violation", 0)
    if row.states == 1 or row.id == "end":
        return "1 run" if row.states else "not run"
    return f"{broken:4} of {row.states} states" if broken else f"     {row.states} states"


def _finding(row: Row) -> Iterator[str]:
    found = row.finding
    if found is None:
        yield from _line("why", row.message)
        return
    at = " at ".join(each for each in (found.state, found.crash_point) if each)
    yield f"  {found.kind}  {at}".rstrip()
    yield from _details(found)


def _details(found: Shown) -> Iterator[str]:
    for label in ("call", "expected", "found", "why", "advice"):
        text = getattr(found, label)
        if text:
            yield from _line(label, text)


def _line(label: str, text: str) -> Iterator[str]:
    """A label and its text, wrapped below itself; what no terminal should get is escaped."""
    safe = text.encode("ascii", "backslashreplace").decode()
    safe = "".join(each if each.isprintable() else repr(each)[1:-1] for each in safe)
    first = f"    {label:{_LABEL}} "
    lines = textwrap.wrap(safe, WIDTH - len(first)) or [""]
    yield first + lines[0]
    yield from (" " * len(first) + line for line in lines[1:])


def hinted(exercise: Exercise, number: int) -> Iterator[str]:
    """Hint ``number``, from 1 on."""
    yield f"hint {number} of {len(HINTS)} ({HINTS[number - 1]}): {exercise.hints[number - 1]}"
