"""Results of every status, as tests of what is made from them need them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crashcourse import catalog
from crashcourse.marking import unjudged
from crashcourse.result import Outcome, Result, Shown, rows_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from crashcourse.result import Verdict, Visibility

EXERCISE = catalog.find("unbreakable-save")
PRIVATE_TEXT = "a ticket of the private twin"
PUBLIC_TEXT = "a ticket that everybody knows"
STATUSES = ("pass", "fail", "incomplete", "judge-error")


def of(public: Mapping[str, Verdict], private: Mapping[str, Verdict], *, error: str = "") -> Result:
    """A result in which all cases are consistent but these, each with a text that tells its seed."""
    return Result(
        exercise=EXERCISE.slug,
        submission_sha256="0" * 64,
        seeds={"public": 1, "private_sha256": "1" * 64},
        isolation="user",
        recorder="python",
        kit_version="0.1.0",
        error=error,
        rows=[*_rows(public, "public", PUBLIC_TEXT), *_rows(private, "private", PRIVATE_TEXT)],
    )


def _rows(verdicts: Mapping[str, Verdict], visibility: Visibility, text: str) -> list:  # type: ignore[type-arg]  # rows, as they come
    outcomes = []
    for case in EXERCISE.cases:
        verdict = verdicts.get(case.id, "consistent")
        finding = Shown(kind="lost", state="kill@1", found=text, replay=f"crashlab replay {text}")
        outcomes.append(
            Outcome(
                case=case.id,
                verdicts={verdict: 1, "consistent": case.states},
                finding=finding if verdict == "violation" else None,
                message=text if verdict == "unmeasured" else "",
            )
        )
    return rows_of(EXERCISE, outcomes, visibility)


def of_status(status: str) -> Result:
    """One of each."""
    return {
        "pass": lambda: of({}, {}),
        "fail": lambda: of({"kill": "violation"}, {"kill": "violation", "power": "violation", "race": "unmeasured"}),
        "incomplete": lambda: of({"kill": "unmeasured"}, {"power": "unmeasured"}),
        "judge-error": lambda: unjudged(EXERCISE, b"x", 7, message="no", error=PRIVATE_TEXT),
    }[status]()
