"""Exercism's ``results.json``, version 3 (exercism/docs, building/tooling/test-runners/interface.md).

Made from the public result: the student reads it. The order of tests is that of the cases, because only the first
failure is shown. ``error`` is said only where nothing ran.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from crashcourse.adapters.words import details, headline, passed

if TYPE_CHECKING:
    from collections.abc import Mapping

VERSION = 3
OUTPUT_CHARACTERS = 500


def rendered(_whole: Mapping[str, Any], public: Mapping[str, Any]) -> str:
    """The text of ``results.json``."""
    cases = public["cases"]
    if not any(case["states"] for case in cases):
        why = public["error"] or next((case["message"] for case in cases if case["message"]), "nothing could be judged")
        return json.dumps({"version": VERSION, "status": "error", "message": why, "tests": []}, indent=1) + "\n"
    invariants = list(dict.fromkeys(case["invariant"] for case in cases))
    tests = [_test(case, invariants.index(case["invariant"]) + 1) for case in cases]
    status = "pass" if all(test["status"] == "pass" for test in tests) else "fail"
    form = {"version": VERSION, "status": status, "message": None, "tests": tests}
    return json.dumps(form, indent=1) + "\n"


def _test(case: Mapping[str, Any], task: int) -> dict[str, Any]:
    if passed(case):
        status, message = "pass", None
    else:
        # A case of which nothing ran is an error of itself; what ran and could not be judged is no pass either.
        status = "fail" if case["states"] else "error"
        message = "\n".join(filter(None, (headline(case), details(case))))
    found = case["finding"]
    return {
        "name": case["id"],
        "status": status,
        "message": message,
        "output": _short(f"{case['id']}: {headline(case)}"),
        "test_code": found["replay"] if found else "",
        "task_id": task,
    }


def _short(text: str) -> str:
    end = "... (cut)"
    return text if len(text) <= OUTPUT_CHARACTERS else text[: OUTPUT_CHARACTERS - len(end)] + end
