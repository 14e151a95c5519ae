"""What the terminal shows: verdict first, then the cases, the one finding that matters first, and what to do next.

Only the verdict is coloured, and only where somebody looks. Prose is folded to the width of the screen; what is to
be copied stands on one line.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from crashcourse.catalog import HINTS, LESSONS
from crashcourse.screen import Screen

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from crashcourse.catalog import Exercise
    from crashcourse.progress import Standing
    from crashcourse.result import Result, Row, Shown

_COLOURS = {"CONSISTENT": "32", "VIOLATION": "31", "UNMEASURED": "33", "JUDGE-ERROR": "31"}
_LABEL = 10
_WORDS = {"pass": "CONSISTENT", "fail": "VIOLATION", "incomplete": "UNMEASURED", "judge-error": "JUDGE-ERROR"}
PLAIN = Screen()


def listing(exercises: Iterable[Exercise], standings: Mapping[str, Standing], screen: Screen = PLAIN) -> Iterator[str]:
    """All exercises below their lessons, and how far the learner is."""
    lesson = 0
    for exercise in exercises:
        if exercise.lesson != lesson:
            lesson = exercise.lesson
            yield screen.safe(f"L{lesson} {LESSONS[lesson]}")
        place = _place(standings.get(exercise.slug))
        line = f"   {exercise.number} {exercise.slug:18} {exercise.kind:7}  {exercise.effort:6}  {place}"
        yield screen.safe(line).rstrip()


def _place(standing: Standing | None) -> str:
    if standing is None:
        return "-"
    return f"{standing.word:8} {standing.best:3}/100" + ("  model answer seen" if standing.model_seen else "")


def checked(result: Result, *, replay: str = "", screen: Screen = PLAIN) -> Iterator[str]:
    """The result of one check. ``replay`` is another command for the finding than its own.

    Advice is not shown: it would be the answer, and that is what the hints lead to. It stands in the JSON form.
    """
    word = _WORDS[result.status]
    twins = "" if any(row.visibility == "private" for row in result.rows) else ", private twins not run"
    shown = screen.painted(word, _COLOURS[word])
    yield f"{shown}  {result.exercise}  {result.points}/{result.points_max}{twins}"
    width = max((len(row.id) for row in result.rows), default=4)
    for row in result.rows:
        yield f"  {row.id:{width}}  {row.verdict:12}{_states(row)}"
    worst = next((row for row in result.rows if row.verdict == "violation"), None)
    if worst is not None:
        yield from _finding(worst, screen)
    yield from _open_cases(result, screen, beside=worst is not None)
    if result.error:
        yield from _detail("why", result.error, screen)
    command = replay or (worst.finding.replay if worst and worst.finding else "")
    if command:
        yield f"  replay  {screen.safe(command)}"
    if result.status != "pass":
        following = "doctor" if result.status == "judge-error" else f"hint {result.exercise}"
        yield f"  next    crashcourse {following}"


def _open_cases(result: Result, screen: Screen, *, beside: bool) -> Iterator[str]:
    """Why a case could not be judged; ``beside`` a finding, which one it is has to be said."""
    unsure = next((row for row in result.rows if row.verdict == "unmeasured"), None)
    if unsure is None:
        return
    if beside:
        yield screen.safe(f"  unmeasured  {unsure.id}")
    why = unsure.message or f"{unsure.states} states, at least {unsure.states_min} are needed"
    yield from _detail("why", why, screen)


def _states(row: Row) -> str:
    """How many, so that their numbers stand below each other."""
    broken = row.verdicts.get("violation", 0)
    if not row.states:
        return "     not run"
    if row.states == 1 or row.id == "end":
        return "   1 run"
    return f"{broken:4} of {row.states} states" if broken else f"{row.states:4} states"


def _finding(row: Row, screen: Screen) -> Iterator[str]:
    found = row.finding
    if found is None:
        yield from _detail("why", row.message, screen)
        return
    at = " at ".join(each for each in (found.state, found.crash_point) if each)
    yield screen.safe(f"  {found.kind}  {at}").rstrip()
    yield from _details(found, screen)


def _details(found: Shown, screen: Screen) -> Iterator[str]:
    for label in ("call", "expected", "found", "why"):
        text = getattr(found, label)
        if text:
            yield from _detail(label, text, screen)


def _detail(label: str, text: str, screen: Screen) -> Iterator[str]:
    yield from screen.folded(f"    {label:{_LABEL}}", text)


def hinted(exercise: Exercise, number: int, screen: Screen = PLAIN) -> Iterator[str]:
    """Hint ``number``, from 1 on."""
    first = f"hint {number} of {len(HINTS)} ({HINTS[number - 1]}): {exercise.hints[number - 1]}"
    lines = list(screen.folded("  ", first))
    yield lines[0].strip()
    yield from lines[1:]
    if number == len(HINTS):
        yield f"  next  crashcourse hint {exercise.slug} --model"
