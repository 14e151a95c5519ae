"""Who handed in what: the folder of submissions, read once, before any of them runs.

A sub-folder per student holds the declared file of one exercise, or a folder per exercise with its file in it. What is
neither is told and left out; nothing is followed that is a symbolic link.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from crashcourse.marking import read
from crashlab.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from crashcourse.catalog import Exercise


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """One file of one student. ``problem`` says why there is nothing to judge, where ``data`` is empty for a reason."""

    student: str
    exercise: Exercise
    data: bytes = b""
    problem: str = ""

    @property
    def sha256(self) -> str:
        """Of the bytes that were handed in."""
        return hashlib.sha256(self.data).hexdigest()

    @property
    def owner(self) -> str:
        """Its name in messages, and where its results go."""
        return f"{self.student}/{self.exercise.slug}"


@dataclass(frozen=True, slots=True)
class Roster:
    """All submissions, by student and exercise, and a line for each thing that was left out."""

    submissions: Sequence[Submission]
    left_out: Sequence[str]


def roster(folder: Path, exercises: Sequence[Exercise], one: Exercise | None) -> Roster:
    """What lies in ``folder``: files of ``one`` exercise, or of all. Raises UsageError where nothing is found."""
    if not folder.is_dir():
        text = f"{folder} is no folder; pass the one that holds a folder per student"
        raise UsageError(text)
    left_out: list[str] = []
    found = [
        submission
        for student in _folders(folder, left_out)
        for submission in (_of_one(student, one) if one else _of_all(student, exercises, left_out))
    ]
    if not found:
        wanted = f"<student>/{one.file}" if one else "<student>/<exercise>/<file>"
        hint = "" if one else "; with --exercise, <student>/<file> will do"
        text = f"{folder}: no submission was found; expected {wanted}{hint}"
        raise UsageError(text)
    return Roster(found, left_out)


def _folders(folder: Path, left_out: list[str]) -> Iterator[Path]:
    for each in sorted(folder.iterdir()):
        if each.name.startswith("."):
            continue
        if each.is_dir() and not each.is_symlink() and each.name.isprintable():
            yield each
        else:
            left_out.append(f"{ascii(each.name)[1:-1]}: no plain folder of a student")


def _of_one(student: Path, exercise: Exercise) -> Iterator[Submission]:
    nested = student / exercise.slug
    yield _submission(student.name, exercise, nested if nested.is_dir() and not nested.is_symlink() else student)


def _of_all(student: Path, exercises: Sequence[Exercise], left_out: list[str]) -> Iterator[Submission]:
    by_slug = {exercise.slug: exercise for exercise in exercises}
    for each in _folders(student, left_out):
        if each.name in by_slug:
            yield _submission(student.name, by_slug[each.name], each)
        else:
            left_out.append(f"{student.name}/{each.name}: there is no such exercise")


def _submission(student: str, exercise: Exercise, folder: Path) -> Submission:
    file = folder / exercise.file
    try:
        return Submission(student=student, exercise=exercise, data=read(file))
    except UsageError as error:
        return Submission(student=student, exercise=exercise, problem=str(error))
