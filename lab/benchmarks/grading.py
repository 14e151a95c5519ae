"""What a batch of submissions costs: wall time, and CPU seconds per submission that had to be judged.

``python -m benchmarks.grading 100`` grades a hundred mixed ones, of which eighty-eight are different files. Of
twenty-five, ten are of the exercise 2.2, the largest that a class writes by itself (:data:`MIX`), and fifteen of five
others. There are correct ones that differ in a comment, planted mistakes, untouched starters, a cheat that ends its
process with 0, one that hangs, one that is no Python, and some that are another's, byte for byte. ``make bench`` grades
four, none of which hangs.

It is no figure if a verdict is wrong: a correct one passes, a planted mistake loses its own case, and so on. Afterwards
no process and no folder may be left, and a second grading with the same secret must come to the same results.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import resource
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crashcourse import catalog
from crashcourse.grading import batch, housing
from crashcourse.grading.roster import Submission
from crashcourse.grading.shelf import Shelf
from crashcourse.notebook import plain
from crashlab.errors import LabError
from crashlab.recover import sweep

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from crashcourse.catalog import Exercise
    from crashcourse.grading.batch import Graded

USUAL = 4
LIMIT_S = 120.0
CORRECT, WRONG, STARTER, CHEAT, HANGS, NO_PYTHON, COPY = (
    "correct",
    "wrong",
    "starter",
    "cheat",
    "hangs",
    "syntax",
    "copy",
)
STATUS = {CORRECT: "pass", WRONG: "fail", STARTER: "fail", CHEAT: "fail", HANGS: "fail", NO_PYTHON: "fail"}
MIX: Sequence[tuple[str, Sequence[str]]] = (
    ("unbreakable-save", (WRONG, CORRECT, NO_PYTHON, STARTER, WRONG, CHEAT, COPY, WRONG, HANGS, CORRECT)),
    ("loss-inventory", (CORRECT, WRONG, STARTER, COPY)),
    ("missing-fields", (WRONG, CORRECT, CORRECT)),
    ("price-of-rerun", (CORRECT, WRONG, CORRECT)),
    ("ways-back", (WRONG, CORRECT, COPY)),
    ("twice", (CORRECT, WRONG)),
)
"""Of twenty-five submissions: the exercise, and what is handed in. A copy is the one before it, byte for byte."""
_LEAVES = "import os\nos._exit(0)\n"
_SLEEPS = "import time\n\ndef save(dir, state):\n    time.sleep(1e6)\n\ndef load(dir):\n    return None\n"


@dataclass(frozen=True)
class Handed:
    """One submission, what it is, and the case that it must lose, if it is known for one."""

    submission: Submission
    kind: str
    loses: str = ""

    def differs(self, graded: Graded) -> str:
        """How the result is not what it must be; nothing where it is."""
        whole, wanted = graded.whole, STATUS[self.kind]
        kept = {row["id"] for row in whole["cases"] if row["visibility"] == "public" and row["verdict"] == "consistent"}
        if whole["status"] == wanted and self.loses not in kept:
            return ""
        return f"{self.submission.owner}, {self.kind}: {whole['status']} {whole['points']} {whole['error']}"


def mixed(count: int) -> Iterator[Handed]:
    """So many submissions of all kinds."""
    kinds = [(catalog.find(slug), kind) for slug, some in MIX for kind in some]
    # From one exercise to the next, so that a few are mixed too.
    turns = [pair for row in itertools.zip_longest(*_by_exercise(kinds)) for pair in row if pair is not None]
    last: dict[str, Handed] = {}
    for number, (exercise, kind) in enumerate(itertools.islice(itertools.cycle(turns), count)):
        student = f"s{number:03}"
        if kind == COPY and exercise.slug in last:
            before = last[exercise.slug]
            copy = Submission(student=student, exercise=exercise, data=before.submission.data)
            yield Handed(copy, before.kind, before.loses)
            continue
        name = sorted(exercise.wrong)[number % len(exercise.wrong)]
        text = f"{_text(exercise, kind, name)}\n# handed in by number {number}\n"
        loses = exercise.wrong[name] if kind == WRONG else ""
        last[exercise.slug] = Handed(Submission(student=student, exercise=exercise, data=text.encode()), kind, loses)
        yield last[exercise.slug]


def _by_exercise(kinds: Sequence[tuple[Exercise, str]]) -> list[list[tuple[Exercise, str]]]:
    return [[pair for pair in kinds if pair[0].slug == slug] for slug, _ in MIX]


def _text(exercise: Exercise, kind: str, wrong: str) -> str:
    made_up = {NO_PYTHON: "def (", HANGS: _SLEEPS, CHEAT: _LEAVES}
    if kind in made_up:
        return made_up[kind]
    name = {CORRECT: "solution", STARTER: "starter"}.get(kind, f"wrong/{wrong}")
    return (exercise.folder / name / exercise.file).read_text(encoding="utf-8")


def graded_in(folder: Path, handed: Sequence[Handed]) -> list[Graded]:
    """All of them, graded under one secret. Raises LabError for a wrong verdict, and for whatever is left."""
    shelf, (isolation, _) = Shelf(folder, b"benchmark"), housing.find()
    shelf.prepare()
    plan = batch.Plan(
        shelf=shelf, isolation=isolation, hidden=housing.hidden(), jobs=os.cpu_count() or 1, limit_s=LIMIT_S
    )
    graded = batch.grade(plan, [each.submission for each in handed], lambda _: None)
    wrong = [text for one, result in zip(handed, graded, strict=True) if (text := one.differs(result))]
    left = [f"process {pid}" for pid in sweep.descendants(os.getpid())]
    left += map(str, Path(tempfile.gettempdir()).iterdir())
    if wrong or left:
        raise LabError("; ".join([*wrong, *(f"{each} is left" for each in left)]))
    return graded


def differing(one: Sequence[Graded], other: Sequence[Graded]) -> list[str]:
    """In what two gradings came to something else, but for the time that it took."""
    found = []
    for first, second in zip(one, other, strict=True):
        pairs = zip(_timeless(first.whole)["cases"], _timeless(second.whole)["cases"], strict=False)
        told = [f"{row}\n{also}" for row, also in pairs if row != also]
        if told or _timeless(first.whole) != _timeless(second.whole):
            found.append(f"{first.submission.owner}: {'; '.join(told)}")
    return found


def _timeless(whole: Mapping[str, Any]) -> dict[str, Any]:
    return {**whole, "cases": [{**row, "ms": 0, "finding": _gist(row["finding"])} for row in whole["cases"]]}


def _gist(finding: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Without how to replay it, which names the folder of the run, and what a submission itself makes up anew."""
    return None if finding is None else plain({**finding, "replay": ""})


def main(count: int = USUAL) -> None:
    """Grade twice and print two lines."""
    handed = list(mixed(count))
    with tempfile.TemporaryDirectory() as folder, _own_temporary(Path(folder, "tmp")):
        began, used = time.perf_counter(), _used_s()
        graded = graded_in(Path(folder, "first"), handed)
        wall_s, cpu_s = time.perf_counter() - began, _used_s() - used
        others = differing(graded, graded_in(Path(folder, "second"), handed))
    if others:
        text = "a second grading with the same secret came to other results: " + "\n".join(others)
        raise LabError(text)
    judged = len({each.submission.data for each in handed})
    told = ", ".join(f"{number} {status}" for status, number in sorted(batch.counts(graded).items()))
    print(f"graded {count} submissions, {judged} different ones, on {os.cpu_count()} cores: {told}")
    print(
        f"{wall_s:.0f} s, {cpu_s:.0f} CPU seconds, {cpu_s / judged:.1f} for each different one; "
        "every verdict is right, nothing is left, and a second grading came to the same"
    )


@contextlib.contextmanager
def _own_temporary(folder: Path) -> Iterator[None]:
    """A folder of its own for what is temporary, so that what is left there was left by this grading."""
    folder.mkdir()
    for each in (folder.parent, folder):
        each.chmod(0o711)  # guests find their places below
    before, tempfile.tempdir = tempfile.tempdir, str(folder)
    try:
        yield
    finally:
        tempfile.tempdir = before


def _used_s() -> float:
    """CPU seconds of all children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
