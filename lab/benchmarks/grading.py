"""What a batch of submissions costs: wall time, and CPU seconds per submission that had to be judged.

``python -m benchmarks.grading 100`` grades a hundred mixed ones of the exercise 2.2: in ten, three have planted
mistakes, two are correct and differ in a comment, two are the same file as another's, and one each is the untouched
starter, hangs, or is no Python. ``make bench`` grades four, none of which hangs.
"""

from __future__ import annotations

import os
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from crashcourse import catalog
from crashcourse.grading import batch, housing
from crashcourse.grading.roster import Submission
from crashcourse.grading.shelf import Shelf

if TYPE_CHECKING:
    from collections.abc import Iterator

    from crashcourse.catalog import Exercise

USUAL = 4
HANG_LIMIT_S = 120.0
_SLEEPS = "import time\n\ndef save(dir, state):\n    time.sleep(1e6)\n\ndef load(dir):\n    return None\n"


def mixed(exercise: Exercise, count: int) -> Iterator[Submission]:
    """So many submissions of all kinds."""
    wrong = sorted(exercise.wrong)
    for number in range(count):
        solution, starter = (_text(exercise, name) for name in ("solution", "starter"))
        mistake = _text(exercise, f"wrong/{wrong[number % len(wrong)]}")
        texts = [mistake, solution, starter, "def (", solution, solution, mistake, mistake, _SLEEPS, solution]
        text, own = texts[number % 10], number % 10 not in (2, 4, 5)
        comment = f"\n# handed in by number {number}\n" if own else ""
        yield Submission(student=f"s{number:03}", exercise=exercise, data=(text + comment).encode())


def _text(exercise: Exercise, name: str) -> str:
    return (exercise.folder / name / exercise.file).read_text(encoding="utf-8")


def main(count: int = USUAL) -> None:
    """Grade and print one line."""
    exercise, cores = catalog.find("unbreakable-save"), os.cpu_count() or 1
    isolation, _ = housing.find()
    submissions = list(mixed(exercise, count))
    with tempfile.TemporaryDirectory() as folder:
        shelf = Shelf(Path(folder, "results"), b"benchmark")
        shelf.prepare()
        plan = batch.Plan(shelf=shelf, isolation=isolation, hidden=housing.hidden(), jobs=cores, limit_s=HANG_LIMIT_S)
        began, used = time.perf_counter(), _used_s()
        graded = batch.grade(plan, submissions, lambda _: None)
        wall_s, cpu_s = time.perf_counter() - began, _used_s() - used
    judged = len({submission.sha256 for submission in submissions})
    told = ", ".join(f"{number} {status}" for status, number in sorted(batch.counts(graded).items()))
    print(f"graded {count} submissions, {judged} different ones, on {cores} cores: {told}")
    print(f"{wall_s:.0f} s, {cpu_s:.0f} CPU seconds, {cpu_s / judged:.1f} for each different one")


def _used_s() -> float:
    """CPU seconds of all children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
