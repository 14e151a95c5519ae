"""``crashcourse doctor``: whether this machine can run the course, told apart from an exercise that is not begun.

All starters fail on the first day, as they should. So the set-up is tried on what must pass: the lab checks a store
of its own that does it right. What fails there is the machine's fault, and what fails in ``check`` is not.
"""

from __future__ import annotations

import platform
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from crashcourse import catalog, progress
from crashcourse.grading import housing
from crashcourse.screen import Screen
from crashlab import doctor
from crashlab.errors import CrashlabError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

SCHEMA = "crashcourse.doctor/1"
NOTE = "note   "
NO_ROOM = "See what is used up: processes (ulimit -u), open files (ulimit -n), space (df). Then try again."
PLAIN = Screen()


@dataclass(frozen=True, kw_only=True)
class Setup:
    """What was found. ``broken`` are faults of the machine or of the course's files, each with what to do."""

    parts: tuple[str, ...]
    broken: tuple[tuple[str, str], ...]
    not_started: tuple[str, ...]
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """What ``--json`` prints."""
        return {
            "schema": SCHEMA,
            "ready": not self.broken,
            "parts": list(self.parts),
            "broken": [{"what": what, "next": following} for what, following in self.broken],
            "not_started": list(self.not_started),
            "notes": list(self.notes),
        }


def examine(work: Path) -> Setup:
    """Look at everything; takes some seconds, and leaves nothing behind."""
    try:
        findings = doctor.examine()
    except OSError as error:  # no process to be had, no file: with that nothing else can be tried either
        return Setup(parts=(), broken=((f"a check from end to end: {error}", NO_ROOM),), not_started=())
    broken = [(f"{each.name}: {each.detail}", each.next) for each in findings if each.core and not each.works]
    notes, begun, every = [], {}, []
    try:
        every, begun = catalog.exercises(), progress.load(work)
    except CrashlabError as error:
        broken.append((f"the course: {error}", "Install crashlab again, or mend what is named."))
    isolation, why = housing.find()
    if why:
        notes.append(f"submissions of others would be judged as {isolation}: {why}")
    strace, why_none = _strace(findings)
    if why_none:
        notes.append(f"the course runs without strace, and nobody sees a submission from outside: {why_none}")
    python = ".".join(platform.python_version_tuple()[:2])
    untouched = tuple(each.number for each in every if each.slug not in begun)
    parts = (f"python {python}", _fork(findings), strace, f"isolation {isolation}")
    return Setup(parts=parts, broken=tuple(broken), not_started=untouched, notes=tuple(notes))


def _fork(findings: Sequence[doctor.Finding]) -> str:
    whole = next((each for each in findings if each.name == "a check from end to end"), None)
    return "fork yes" if whole is not None and whole.works else "fork no"


def _strace(findings: Sequence[doctor.Finding]) -> tuple[str, str]:
    """Its version, or "no" where it cannot watch a process here, and then why; the course runs without it."""
    found = next((each for each in findings if each.name == "strace"), None)
    if found is None or not found.works:
        return "strace no", found.detail if found is not None else ""
    return f"strace {found.detail.partition(',')[0]}", ""


def lines(found: Setup, screen: Screen = PLAIN) -> Iterator[str]:
    """What the terminal shows: the verdict first."""
    if found.broken:
        for what, following in found.broken:
            yield from screen.folded("SETUP BROKEN  ", what)
            if following:
                yield from screen.folded("   next  ", following)
        yield from screen.folded(NOTE, "no exercise can be judged before that; nothing of it is your exercise's fault")
        return
    yield f"READY  {', '.join(found.parts)}"
    if found.not_started:
        alone = len(found.not_started) == 1
        which = f"{found.not_started[0]} is" if alone else f"{len(found.not_started)} exercises are"
        theirs = "its" if alone else "their"
        note = f"{which} NOT STARTED: {theirs} failures are expected (a fault here prints SETUP BROKEN)"
        yield from screen.folded(NOTE, note)
    for each in found.notes:
        yield from screen.folded(NOTE, each)
