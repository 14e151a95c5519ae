"""Gradescope's ``results.json`` (gradescope-autograders.readthedocs.io, specs).

One test per case, visible, that bears the points; one per private twin, hidden, that says how the twin came out
and bears none: a case earns its points if both are consistent. The texts of a private twin are in neither.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from crashcourse.adapters.words import details, headline, is_private, passed

if TYPE_CHECKING:
    from collections.abc import Mapping


def rendered(whole: Mapping[str, Any], _public: Mapping[str, Any]) -> str:
    """The text of ``results.json``."""
    cases = whole["cases"]
    form = {
        "score": whole["points"],
        "execution_time": round(sum(case["ms"] for case in cases) / 1000),
        "output": f"{whole['exercise']}: {whole['status']}, {whole['points_covered']} of "
        f"{whole['points_max']} points could be judged",
        "visibility": "visible",
        "stdout_visibility": "hidden",
        "tests": [_test(case, number) for number, case in enumerate(cases, 1)],
        "extra_data": {
            name: whole[name]
            for name in ("schema", "exercise", "kit_version", "submission_sha256", "status", "isolation", "recorder")
        },
    }
    return json.dumps(form, indent=1) + "\n"


def _test(case: Mapping[str, Any], number: int) -> dict[str, Any]:
    private = is_private(case)
    return {
        "score": 0 if private else case["points"],
        "max_score": 0 if private else case["points_max"],
        "status": "passed" if passed(case) else "failed",
        "name": f"{case['id']} (private twin)" if private else case["id"],
        "number": str(number),
        "output": "\n".join(filter(None, (case["invariant"], headline(case), details(case)))),
        "tags": [case["family"], case["verdict"]],
        "visibility": "hidden" if private else "visible",
    }
