"""The list of cases holds together: each covered or left for a reason, each source cited, the page made of it."""

from __future__ import annotations

import inspect
import re
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from crashlab.kinds import KINDS
from tests.casebook.table import FOLDER, MODULES, SCENARIOS, Case, module_of, read_cases, render

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.casebook.scenario import Scenario

CASES = read_cases()
HOW_MANY = 74
MEASURED = "measured on a released"


def complaints(cases: Sequence[Case]) -> Iterator[str]:
    """What is wrong with a list of cases."""
    for name, count in Counter(case.id for case in cases).items():
        if count > 1:
            yield f"{name} stands there {count} times"
    for case in cases:
        if bool(case.scenarios) == bool(case.reason):
            yield f"{case.id} needs scenarios or a reason, and not both"
        for name in case.scenarios:
            if name not in SCENARIOS:
                yield f"{case.id}: no scenario {name!r}"
            elif not is_told(case, name):
                yield f"{case.id}: {module_of(name)} does not say where it was met"
    for name in sorted(SCENARIOS.keys() - {name for case in cases for name in case.scenarios}):
        yield f"no case is told by {name!r}"


def is_told(case: Case, scenario: str) -> bool:
    """Whether the module of a scenario names the address of the case, or says that this was measured."""
    (module,) = (module for module in MODULES if scenario in module.SCENARIOS)
    text = " ".join(inspect.getsource(module).split())
    return re.search(rf"{re.escape(case.source)}(?!\d)", text) is not None if case.source else MEASURED in text.lower()


def test_the_list_is_whole() -> None:
    """Every case is there once, covered or left for a reason, and every scenario tells one."""
    assert len(CASES) == HOW_MANY
    assert list(complaints(CASES)) == []


def test_the_page_is_made_of_the_list() -> None:
    """README.md is what the list gives; ``python -m tests.casebook.table`` writes it."""
    assert (FOLDER / "README.md").read_text() == render(CASES)


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_scenario_says_what_it_expects(name: str) -> None:
    """Kinds that the lab knows, and two forms that are not one."""
    scenario: Scenario = SCENARIOS[name]
    assert scenario.kinds
    assert scenario.kinds <= set(KINDS)
    assert scenario.naive != scenario.correct


def test_names_are_not_used_twice() -> None:
    """A scenario of one module does not hide that of another."""
    assert len(SCENARIOS) == sum(len(module.SCENARIOS) for module in MODULES)


@pytest.mark.parametrize(
    "spoiled",
    [
        [*CASES, CASES[0]],
        [*CASES, Case("X-1", "anywhere")],
        [replace(CASES[0], reason="too hard"), *CASES[1:]],
        [replace(CASES[0], scenarios=("a call left open", "no such thing")), *CASES[1:]],
        [replace(CASES[0], source="https://example.org/never-cited"), *CASES[1:]],
        [case for case in CASES if "one digit more" not in case.scenarios],
    ],
    ids=["twice", "neither", "both", "no scenario", "not cited", "a scenario without a case"],
)
def test_a_spoiled_list_is_noticed(spoiled: list[Case]) -> None:
    """Sabotage: each way to spoil the list gives one complaint."""
    assert len(list(complaints(spoiled))) == 1
