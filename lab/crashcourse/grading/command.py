"""``crashcourse grade``: options, progress on stderr, the last line, and the files that others read."""

from __future__ import annotations

import dataclasses
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crashcourse import catalog
from crashcourse.adapters import FORMATS, table
from crashcourse.grading import batch, housing, secret
from crashcourse.grading.roster import roster
from crashcourse.grading.shelf import Shelf, replace
from crashlab.errors import UsageError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from crashcourse.grading.batch import Graded

SCHEMA = "crashcourse.grade/1"
ORDER = ("pass", "fail", "incomplete", "judge-error")


def options(command: argparse.ArgumentParser) -> None:
    """The grammar of the command."""
    command.add_argument("folder", type=Path, help="a sub-folder per student: <student>/<exercise>/<file>")
    command.add_argument("--exercise", help="slug or number: the folders hold <student>/<file> of this one exercise")
    command.add_argument(
        "--seed-fd", type=int, metavar="N", help="read the secret of the private twins from this descriptor"
    )
    command.add_argument("--out", type=Path, default=Path("results"), help="where results go (results)")
    command.add_argument("--csv", type=Path, metavar="FILE", help="one line per submission")
    command.add_argument(
        "--formats", default="", help=f"further files beside each result, a list of: {', '.join(FORMATS)}"
    )
    command.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="so many submissions at a time")
    command.add_argument(
        "--limit", type=float, default=batch.LIMIT_S, metavar="S", help=f"seconds for one ({batch.LIMIT_S:g})"
    )


def run(asked: argparse.Namespace) -> int:
    """Grade, and return 0: the verdicts are in the results. Raises UsageError for what cannot be graded at all."""
    formats = _formats(asked.formats)
    one = catalog.find(asked.exercise) if asked.exercise else None
    found = roster(asked.folder, catalog.exercises(), one)
    for line in found.left_out:
        _say(f"left out  {line}")
    if asked.seed_fd is None:
        _say("no --seed-fd: private twins of this run alone, so that another run judges everything anew")
    shelf = Shelf(asked.out.absolute(), secret.fresh() if asked.seed_fd is None else secret.read(asked.seed_fd))
    shelf.prepare()
    kind, why = housing.find()
    _say(f"isolation {kind}" + (f" ({why})" if why else ""))
    plan = batch.Plan(
        shelf=shelf,
        isolation=kind,
        hidden=housing.hidden(asked.folder, asked.out),
        jobs=max(1, asked.jobs),
        limit_s=asked.limit,
    )
    told = _Told(len(found.submissions))
    try:
        graded = batch.grade(plan, found.submissions, told.one)
    except KeyboardInterrupt:
        _say(f"interrupted: {told.count} results are kept; the same command goes on with the rest")
        raise
    _views(shelf, graded, formats)
    if asked.csv is not None:
        replace(asked.csv.absolute(), table.rendered(graded).encode())
    _print(graded, shelf, as_json=asked.json)
    return 0


def _formats(text: str) -> list[str]:
    names = [name for name in text.split(",") if name]
    for name in names:
        if name not in FORMATS:
            message = f"--formats {name}: known are {', '.join(FORMATS)}"
            raise UsageError(message)
    return names


def _views(shelf: Shelf, graded: Sequence[Graded], formats: Sequence[str]) -> None:
    for each in graded:
        for name in formats:
            form = FORMATS[name]
            shelf.view(each.submission, form.file, form.rendered(each.whole, each.public))


@dataclasses.dataclass
class _Told:
    """One line of progress per result."""

    total: int
    count: int = 0

    def one(self, each: Graded) -> None:
        self.count += 1
        width = len(str(self.total))
        again = "  (judged before)" if each.before else ""
        points = f"{each.whole['points']}/{each.whole['points_max']}"
        owner = ascii(each.submission.owner)[1:-1]
        _say(f"[{self.count:{width}}/{self.total}] {owner}  {each.whole['status']}  {points}{again}")


def _print(graded: Sequence[Graded], shelf: Shelf, *, as_json: bool) -> None:
    counts = batch.counts(graded)
    if as_json:
        rows = [_row(each, shelf) for each in graded]
        print(json.dumps({"schema": SCHEMA, "counts": {name: counts[name] for name in ORDER}, "graded": rows}))
        return
    print(f"GRADED  {len(graded)}: {', '.join(f'{counts[name]} {name}' for name in ORDER)}")


def _row(each: Graded, shelf: Shelf) -> dict[str, Any]:
    names = ("status", "points", "points_covered", "points_max", "submission_sha256")
    return {
        "student": each.submission.student,
        "exercise": each.submission.exercise.slug,
        **{name: each.whole[name] for name in names},
        "folder": str(shelf.place(each.submission)),
    }


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
