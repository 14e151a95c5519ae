"""The exercises: what each is called, which file is handed in, which cases it is judged by.

Each is a folder below ``exercises``: ``exercise.toml`` says how it is judged, ``text.en.toml`` what the learner
reads, ``starter`` holds what the learner begins with, ``solution`` what gets all points, and ``wrong`` one file
for each planted mistake. A folder that is not so is refused whole, with the key that is wrong: a case that
is silently left out would be a mark that nobody can explain.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from crashcourse.material import root
from crashlab.errors import UsageError
from crashlab.toml_file import known_keys, parsed, wrong

if TYPE_CHECKING:
    from pathlib import Path

LESSONS: dict[int, str] = {
    1: "Memory is not state",
    2: "Checkpoints",
    3: "Resume",
    4: "Effects and idempotency",
    5: "Rewind and fork",
    6: "Capstone",
    7: "An event log that is the truth, and a session tree beside it",
}
MARK = "TO" + "DO"
"""What a starter says where something is left to do."""
KINDS = ("code", "explain")
HINTS = ("where to look", "which invariant", "nearly the answer")
FULL_MARKS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One invariant and what it is worth.

    ``states`` is how many states must have been judged at least: fewer are no pass, whatever came out.
    """

    id: str
    points: int
    invariant: str
    states: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Exercise:
    """One exercise. ``wrong`` maps each planted mistake to the case that it loses; ``starter`` the starter's.

    ``guard`` are the least counts of the recorded run (``ops``, ``acks``, ``effects``, ``save_points``).
    """

    slug: str
    number: str
    title: str
    kind: Literal["code", "explain"]
    effort: str
    file: str
    judge: str
    cases: tuple[Case, ...]
    folder: Path
    task: str
    hints: tuple[str, ...]
    model: str
    starter: tuple[str, ...]
    wrong: dict[str, str] = field(default_factory=dict)
    guard: dict[str, int] = field(default_factory=dict)

    @property
    def lesson(self) -> int:
        """The number of its lesson."""
        return int(self.number.partition(".")[0])

    def case(self, name: str) -> Case:
        """The case of that id. Raises KeyError."""
        return {case.id: case for case in self.cases}[name]


def exercises() -> list[Exercise]:
    """All exercises in the order of the course. Raises UsageError for a folder that breaks the rules."""
    folders = sorted(path.parent for path in (root() / "exercises").glob("*/exercise.toml"))
    return sorted((read(folder) for folder in folders), key=lambda exercise: _order(exercise.number))


def find(name: str) -> Exercise:
    """The exercise of that slug or number. Raises UsageError that names near ones."""
    every = exercises()
    for exercise in every:
        if name in (exercise.slug, exercise.number):
            return exercise
    near = difflib.get_close_matches(name, [each.slug for each in every], n=1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    text = f"there is no exercise {name!r}; {hint}crashcourse list shows all of them"
    raise UsageError(text)


def _order(number: str) -> tuple[int, ...]:
    return tuple(int(part) for part in number.split("."))


def read(folder: Path) -> Exercise:
    """The exercise in ``folder``. Raises UsageError with the file and the key that is wrong."""
    form, text = parsed(folder / "exercise.toml", option="--exercise"), parsed(folder / "text.en.toml", option="--text")
    known_keys("", form, ("number", "kind", "effort", "file", "judge", "starter", "guard", "case", "wrong"))
    known_keys("", text, ("title", "task", "hints", "model"))
    try:
        exercise = Exercise(
            slug=folder.name,
            folder=folder,
            cases=tuple(_case(each) for each in form["case"]),
            title=text["title"],
            task=text["task"],
            hints=tuple(text["hints"]),
            model=text["model"],
            starter=tuple(form["starter"]),
            wrong=dict(form.get("wrong", {})),
            guard=dict(form.get("guard", {})),
            **{key: form[key] for key in ("number", "kind", "effort", "file", "judge")},
        )
    except KeyError as error:
        message = f"{folder.name}: {error.args[0]} is missing in exercise.toml or text.en.toml"
        raise UsageError(message) from error
    _demand_whole(exercise)
    return exercise


def _case(form: dict[str, Any]) -> Case:
    known_keys("case", form, ("id", "points", "states", "invariant"))
    return Case(**form)


def _demand_whole(exercise: Exercise) -> None:
    """Raise UsageError unless points come to 100, there are three hints, and what is named is there."""
    place, ids = exercise.slug, [case.id for case in exercise.cases]
    if exercise.kind not in KINDS:
        wrong(f"{place}.kind", exercise.kind, " or ".join(KINDS))
    if sum(case.points for case in exercise.cases) != FULL_MARKS:
        wrong(f"{place}: points", sum(case.points for case in exercise.cases), str(FULL_MARKS))
    if len(set(ids)) != len(ids):
        wrong(f"{place}: case ids", ids, "each once")
    if len(exercise.hints) != len(HINTS) or not all(exercise.hints):
        wrong(f"{place}.hints", list(exercise.hints), f"{len(HINTS)} texts")
    for mistake, lost in [*exercise.wrong.items(), *(("starter", each) for each in exercise.starter)]:
        if lost not in ids:
            wrong(f"{place}.{mistake}", lost, f"a case: {', '.join(ids)}")
    there = [*(f"wrong/{name}" for name in exercise.wrong), "starter", "solution"]
    for name in there:
        if not (exercise.folder / name / exercise.file).is_file():
            text = f"{place}: {name}/{exercise.file} is not there"
            raise UsageError(text)
