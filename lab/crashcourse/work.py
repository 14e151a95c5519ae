"""The learner's work folder: what is there, what is begun, and the hints that were shown."""

from __future__ import annotations

import dataclasses
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from crashcourse import progress
from crashcourse.catalog import HINTS
from crashlab.errors import UsageError

if TYPE_CHECKING:
    from crashcourse.catalog import Exercise
    from crashcourse.progress import Standing
    from crashcourse.result import Result

FOLDER = Path("work")
TASK_NAME = "TASK.md"


@dataclass(frozen=True, slots=True)
class Work:
    """The folder ``work`` below the current directory: a folder per exercise, and the progress file."""

    folder: Path = FOLDER

    def file(self, exercise: Exercise) -> Path:
        """Where the learner writes."""
        return self.folder / exercise.slug / exercise.file

    def task(self, exercise: Exercise) -> Path:
        """Where the learner reads what is to be done."""
        return self.folder / exercise.slug / TASK_NAME

    def standing(self, exercise: Exercise) -> Standing:
        """How far the learner is."""
        return progress.load(self.folder).get(exercise.slug, progress.Standing())

    def start(self, exercise: Exercise) -> Path:
        """Copy the starter, and write the task beside it.

        Raises UsageError where the learner's file is there: nothing is ever overwritten.
        """
        file = self.file(exercise)
        if file.exists():
            text = f"{file} is there already; go on with it, or move it away to begin anew"
            raise UsageError(text)
        known = self.standing(exercise)
        file.parent.mkdir(parents=True, exist_ok=True)
        for source in sorted((exercise.folder / "starter").iterdir()):
            if source.is_file() and not (file.parent / source.name).exists():
                shutil.copyfile(source, file.parent / source.name)
        title = f"# {exercise.number} {exercise.title}\n\n"
        self.task(exercise).write_text(title + exercise.task.strip() + "\n", encoding="utf-8")
        self._keep(exercise, known)
        return file

    def submitted(self, exercise: Exercise) -> Path:
        """The learner's file. Raises UsageError where it was never started."""
        file = self.file(exercise)
        if not file.exists():
            text = f"{file} is not there; begin with: crashcourse start {exercise.slug}"
            raise UsageError(text)
        return file

    def checked(self, exercise: Exercise, result: Result) -> None:
        """Keep what a check came to."""
        self._keep(exercise, progress.after(self.standing(exercise), result))

    def next_hint(self, exercise: Exercise) -> int:
        """The number of the next hint, from 1 on; the last one again once all were shown."""
        standing = self.standing(exercise)
        number = min(standing.hints + 1, len(HINTS))
        self._keep(exercise, dataclasses.replace(standing, hints=number))
        return number

    def _keep(self, exercise: Exercise, standing: Standing) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        progress.keep(self.folder, exercise.slug, standing)
