"""What a check or a grading found: one model, and its JSON form ``crashcourse.result/1``.

A :class:`Row` is one case under one seed. The public report is made from the public rows alone, so that nothing
of the private twin can be in it; the whole report holds both. New fields keep the schema; a removed or
renamed one makes ``/2``. The JSON Schema stands beside this module.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from crashlab.thinning import THINNED, least

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from crashcourse.catalog import Exercise

SCHEMA = "crashcourse.result/1"
JUDGE_FAILED = "the judge failed; who grades knows more"
VERDICTS = ("consistent", "refused", "violation", "unmeasured")
Verdict = Literal["consistent", "refused", "violation", "unmeasured"]
Status = Literal["pass", "fail", "incomplete", "judge-error"]
Visibility = Literal["public", "private"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """The one finding that a case is explained by, in the words of a message: call, expected, found, why."""

    kind: str
    state: str = ""
    crash_point: str = ""
    contract: str = ""
    call: str = ""
    expected: str = ""
    found: str = ""
    why: str = ""
    advice: str = ""
    replay: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One case under one seed: how many states came to which verdict."""

    id: str
    visibility: Visibility
    invariant: str
    family: str
    points_max: int
    states_min: int
    verdicts: Mapping[str, int]
    finding: Shown | None = None
    message: str = ""
    ms: int = 0

    @property
    def states(self) -> int:
        """How many states were judged."""
        return sum(self.verdicts.values())

    @property
    def verdict(self) -> Verdict:
        """That of the whole case. Fewer states than demanded are no pass."""
        if self.verdicts.get("violation"):
            return "violation"
        if self.verdicts.get("unmeasured") or self.states < self.states_min:
            return "unmeasured"
        return "consistent"


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """All rows of one submission. ``seeds`` holds the public seed, and of the private one only its hash.

    ``error`` is the judge's own failure, whose text is for whoever runs the course.
    """

    exercise: str
    submission_sha256: str
    seeds: Mapping[str, Any]
    isolation: str
    recorder: str
    rows: Sequence[Row]
    kit_version: str
    versions: Mapping[str, str] = field(default_factory=dict)
    notices: Sequence[str] = ()
    error: str = ""

    def earned(self, name: str) -> int:
        """The points of a case: all if every row of it is consistent, else none."""
        rows = [row for row in self.rows if row.id == name]
        return rows[0].points_max if rows and all(row.verdict == "consistent" for row in rows) else 0

    @property
    def points(self) -> int:
        """What was earned."""
        return sum(self.earned(name) for name in self.ids)

    @property
    def points_covered(self) -> int:
        """What could be judged at all."""
        unmeasured = {row.id for row in self.rows if row.verdict == "unmeasured"}
        return sum(row.points_max for row in self._first_rows() if row.id not in unmeasured)

    @property
    def points_max(self) -> int:
        """What the exercise is worth."""
        return sum(row.points_max for row in self._first_rows())

    @property
    def ids(self) -> list[str]:
        """The cases, each once."""
        return list(dict.fromkeys(row.id for row in self.rows))

    @property
    def status(self) -> Status:
        """The gravest that holds: a failing judge, a broken promise, something that could not be judged."""
        verdicts = {row.verdict for row in self.rows}
        if self.error or not self.rows:
            return "judge-error"
        return "fail" if "violation" in verdicts else "incomplete" if "unmeasured" in verdicts else "pass"

    def _first_rows(self) -> list[Row]:
        return [next(row for row in self.rows if row.id == name) for name in self.ids]

    def public(self) -> Result:
        """The report for the learner, made from the public rows alone."""
        seeds = {key: value for key, value in self.seeds.items() if key == "public"}
        rows = [row for row in self.rows if row.visibility == "public"]
        error = JUDGE_FAILED if self.error else ""  # its own words may tell of the private twin
        return dataclasses.replace(self, rows=rows, seeds=seeds, error=error)

    def to_json(self) -> dict[str, Any]:
        """The JSON form."""
        return {
            "schema": SCHEMA,
            "exercise": self.exercise,
            "kit_version": self.kit_version,
            "submission_sha256": self.submission_sha256,
            "seeds": dict(self.seeds),
            "isolation": self.isolation,
            "recorder": self.recorder,
            "status": self.status,
            "points": self.points,
            "points_covered": self.points_covered,
            "points_max": self.points_max,
            "cases": [self._row(row) for row in self.rows],
            "notices": list(self.notices),
            "versions": dict(self.versions),
            "error": self.error,
        }

    def _row(self, row: Row) -> dict[str, Any]:
        return {
            "id": row.id,
            "invariant": row.invariant,
            "family": row.family,
            "visibility": row.visibility,
            "verdict": row.verdict,
            "verdicts": {name: row.verdicts.get(name, 0) for name in VERDICTS},
            "states": row.states,
            "states_min": row.states_min,
            "points": self.earned(row.id),
            "points_max": row.points_max,
            "finding": None if row.finding is None else dataclasses.asdict(row.finding),
            "message": row.message,
            "ms": row.ms,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a judge found of one case."""

    case: str
    verdicts: Mapping[str, int]
    family: str = ""
    finding: Shown | None = None
    message: str = ""
    ms: int = 0


def rows_of(
    exercise: Exercise,
    outcomes: Iterable[Outcome],
    visibility: Visibility,
    *,
    cases: frozenset[str] | None = None,
    every: int = 1,
) -> list[Row]:
    """The outcomes of the wanted ``cases`` as rows, all where it is None, in the order of the exercise.

    ``every``: one in so many states of the faults that are thinned was met, so that fewer are demanded.
    Raises ValueError where a case is missing, surplus or there twice: that is the judge's mistake, never the learner's.
    """
    asked = [case for case in exercise.cases if cases is None or case.id in cases]
    known = {case.id for case in exercise.cases}
    found = [each for each in outcomes if each.case not in known or any(each.case == case.id for case in asked)]
    named, wanted = sorted(each.case for each in found), sorted(case.id for case in asked)
    if named != wanted:
        text = f"{exercise.slug}: the judge told of {', '.join(named)}, not of {', '.join(wanted)}"
        raise ValueError(text)
    by_case = {each.case: each for each in found}
    return [
        Row(
            id=case.id,
            visibility=visibility,
            invariant=case.invariant,
            family=by_case[case.id].family or case.id,
            points_max=case.points,
            states_min=least(case.states, every if by_case[case.id].family.partition(":")[0] in THINNED else 1),
            verdicts=by_case[case.id].verdicts,
            finding=by_case[case.id].finding,
            message=by_case[case.id].message,
            ms=by_case[case.id].ms,
        )
        for case in asked
    ]
