"""What all forms say of a case alike."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

PRIVATE = "the private twin: its details are for who grades"


def is_private(case: Mapping[str, Any]) -> bool:
    """Whether the case was judged under the grader's seed."""
    return bool(case["visibility"] == "private")


def passed(case: Mapping[str, Any]) -> bool:
    """Whether it gave no reason to lose its points."""
    return bool(case["verdict"] == "consistent")


def headline(case: Mapping[str, Any]) -> str:
    """One line: the verdict and how many states it is of."""
    broken = case["verdicts"]["violation"]
    if case["verdict"] == "violation":
        return f"violation in {broken} of {case['states']} states"
    if case["verdict"] == "unmeasured":
        return f"unmeasured: {case['states']} states, at least {case['states_min']} are needed"
    return f"consistent in {case['states']} states"


def details(case: Mapping[str, Any]) -> str:
    """The finding, or why there is none; of a private case neither."""
    if is_private(case):
        return "" if passed(case) else PRIVATE
    found = case["finding"]
    if found is None:
        return str(case["message"])
    lines = [" at ".join(each for each in (f"{found['kind']}  {found['state']}".strip(), found["crash_point"]) if each)]
    lines += [f"{name}: {found[name]}" for name in ("call", "expected", "found", "why", "advice") if found[name]]
    return "\n".join(lines)
