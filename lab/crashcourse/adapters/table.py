"""The table of a batch as CSV: student, status, points, covered, max, one column per case, sha256.

With several exercises in one batch the exercise stands behind the student, and a column per case of each. A cell holds
the points of that case. A text that a spreadsheet would take for a formula gets an apostrophe in front.
"""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from crashcourse.grading.batch import Graded

_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def rendered(graded: Sequence[Graded]) -> str:
    """The whole file."""
    several = len({each.submission.exercise.slug for each in graded}) > 1
    columns = list(
        dict.fromkeys(
            (each.submission.exercise.slug, case.id) for each in graded for case in each.submission.exercise.cases
        )
    )
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    names = [f"{slug}:{case}" if several else case for slug, case in columns]
    exercise = ["exercise"] if several else []
    writer.writerow(["student", *exercise, "status", "points", "covered", "max", *names, "sha256"])
    for each in graded:
        writer.writerow(_row(each, columns, several=several))
    return text.getvalue()


def _row(each: Graded, columns: Sequence[tuple[str, str]], *, several: bool) -> list[Any]:
    whole, slug = each.whole, each.submission.exercise.slug
    points = {case["id"]: case["points"] for case in whole["cases"]}
    return [
        _plain(each.submission.student),
        *([slug] if several else []),
        whole["status"],
        whole["points"],
        whole["points_covered"],
        whole["points_max"],
        *(points.get(case, "") if owner == slug else "" for owner, case in columns),
        whole["submission_sha256"],
    ]


def _plain(text: str) -> str:
    return f"'{text}" if text.startswith(_FORMULA) else text
