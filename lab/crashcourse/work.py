"""The learner's work folder: what is there, what is begun, and the hints that were shown."""

from __future__ import annotations

import dataclasses
import shutil
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from crashcourse import progress
from crashcourse.catalog import FULL_MARKS, HINTS
from crashlab.errors import UsageError

if TYPE_CHECKING:
    from crashcourse.catalog import Exercise
    from crashcourse.progress import Standing
    from crashcourse.result import Result

FOLDER = Path("work")
COMMENT_WIDTH = 98
TASK_NAME = "TASK.md"
POINTER = f"# The task is in {TASK_NAME}, beside this file.\n\n"
"""The first lines of what the learner opens. Python and TOML take them for a comment."""


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
        """Copy the starter, which then says where its task is, and write that task beside it.

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
        file.write_text(POINTER + file.read_text(encoding="utf-8"), encoding="utf-8")
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

    def model_answer(self, exercise: Exercise) -> str:
        """The model answer: its idea in comments, then the whole file that gets all points. That it was seen is kept.

        Raises UsageError before the three hints were shown and a check of the learner's own was made.
        """
        standing = self.standing(exercise)
        if standing.hints < len(HINTS):
            text = f"the model answer comes after the {len(HINTS)} hints: crashcourse hint {exercise.slug}"
            raise UsageError(text)
        if not standing.status:
            text = f"the model answer comes after a try of your own: crashcourse check {exercise.slug}"
            raise UsageError(text)
        if standing.best < FULL_MARKS:
            self._keep(exercise, dataclasses.replace(standing, model_seen=True))
        idea = textwrap.wrap(f"The model answer of {exercise.number}. {exercise.model}", COMMENT_WIDTH)
        file = exercise.folder / "solution" / exercise.file
        return "".join(f"# {line}\n" for line in idea) + "\n" + file.read_text(encoding="utf-8")

    def _keep(self, exercise: Exercise, standing: Standing) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        progress.keep(self.folder, exercise.slug, standing)
