"""Marking one submission: let the judge of the exercise work on it, under the public seed and a private one.

With ``copied`` the one declared file is judged in an empty folder: a ``conftest.py``, a ``sitecustomize.py`` or a
report beside it stays behind. A learner's own check judges the file where it lies, so that each finding can
be replayed.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import os
import platform
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crashcourse.folders import temporary
from crashcourse.judges import JUDGES
from crashcourse.judging import EVERY, QUICK, Bench
from crashcourse.result import Outcome, Result, rows_of
from crashlab import __version__
from crashlab.errors import UsageError
from crashlab.recover import guest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from crashcourse.catalog import Exercise
    from crashcourse.result import Row, Visibility
    from crashlab import Budget

PUBLIC_SEED = 1
LARGEST_BYTES = 2**20


def mark(  # noqa: PLR0913 - all but two by keyword
    exercise: Exercise,
    file: Path,
    *,
    private_seed: int | None = None,
    copied: bool = True,
    out: Path = Path(".crashlab"),
    budget: Budget = QUICK,
    jobs: int = 1,
    cases: frozenset[str] | None = None,
    progress: Callable[[str, int, int], None] = lambda *_: None,
) -> Result:
    """The result of one submission, on the wanted ``cases`` or on all.

    The private twin is run on those cases only that the public seed has not lost: no points are left in the others. Of
    what costs most it meets a part (:data:`crashcourse.judging.EVERY`).
    Raises UsageError where the file cannot be read or is no submission.
    """
    data = read(file)
    seeds: dict[Visibility, int | None] = {"public": PUBLIC_SEED, "private": private_seed}
    rows: list[Row] = []
    with _alone(exercise, data) if copied else contextlib.nullcontext(file.absolute()) as place:
        for visibility, seed in seeds.items():
            asked = _not_lost(rows, cases)
            if seed is None or asked == frozenset():
                continue
            bench = Bench(
                exercise=exercise,
                file=place,
                seed=seed,
                out=out,
                budget=budget,
                jobs=jobs,
                cases=asked,
                progress=progress,
            )
            bench = _second(bench) if visibility == "private" else bench
            found = JUDGES[exercise.judge](bench)
            rows += rows_of(exercise, found, visibility, cases=asked, every=bench.budget.every)
    return _result(exercise, data, rows, private_seed)


def _second(bench: Bench) -> Bench:
    """The bench of the private twin: it doubts what it sees, and meets a part of what the first one has met whole."""
    return dataclasses.replace(bench, doubts=True, budget=dataclasses.replace(bench.budget, every=EVERY))


def _not_lost(rows: Sequence[Row], cases: frozenset[str] | None) -> frozenset[str] | None:
    """The wanted cases that are consistent in every row so far; all that are wanted where that is all of them."""
    kept = {row.id for row in rows} - {row.id for row in rows if row.verdict != "consistent"}
    return cases if len(kept) == len({row.id for row in rows}) else frozenset(kept)


@contextlib.contextmanager
def _alone(exercise: Exercise, data: bytes) -> Iterator[Path]:
    """A copy of the declared file, in a folder that holds nothing else and is gone afterwards."""
    with temporary() as folder:
        Path(folder).chmod(0o711)  # a guest reads the copy, and cannot change it
        copy = Path(folder, exercise.file)
        copy.write_bytes(data)
        copy.chmod(0o644)
        yield copy


def read(file: Path) -> bytes:
    """The bytes of a submission. Raises UsageError where it cannot be read, is no plain file, or is too large."""
    try:
        if file.is_symlink() or not file.is_file():
            text = f"{file} is not a plain file; hand in the exercise's own file"
            raise UsageError(text)
        data = file.read_bytes()
    except OSError as error:
        text = f"cannot read {file}: {error.strerror}"
        raise UsageError(text) from error
    if len(data) > LARGEST_BYTES:
        text = f"{file} has {len(data):,} bytes; a submission has at most {LARGEST_BYTES:,}"
        raise UsageError(text)
    return data


def unjudged(exercise: Exercise, data: bytes, private_seed: int | None, *, message: str, error: str = "") -> Result:
    """The result of a submission of which no case could be judged: no points, and no verdict.

    ``message`` is for the learner; ``error``, where the judge itself failed, for whoever runs the course.
    """
    outcomes = [Outcome(case=case.id, verdicts={}, message=message) for case in exercise.cases]
    return _result(exercise, data, rows_of(exercise, outcomes, "public"), private_seed, error=error)


def seed_sha256(private_seed: int) -> str:
    """What a report says of a private seed."""
    return hashlib.sha256(str(private_seed).encode()).hexdigest()


def _result(exercise: Exercise, data: bytes, rows: list[Row], private_seed: int | None, *, error: str = "") -> Result:
    seeds: dict[str, Any] = {"public": PUBLIC_SEED}
    if private_seed is not None:
        seeds["private_sha256"] = seed_sha256(private_seed)
    return Result(
        exercise=exercise.slug,
        submission_sha256=hashlib.sha256(data).hexdigest(),
        seeds=seeds,
        error=error,
        isolation=guest.isolation(),
        recorder="python",
        rows=rows,
        kit_version=__version__,
        versions={"crashlab": __version__, "python": platform.python_version(), "system": os.uname().sysname},
    )
