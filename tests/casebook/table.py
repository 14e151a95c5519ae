"""The list of cases, and the table that README.md shows of it: ``python -m tests.casebook.table`` writes it anew."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests.casebook import caches, logs, owners, recoveries, saves, sessions, streams, turns
from tests.casebook.event_log import TRIALS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.casebook.scenario import Scenario

FOLDER = Path(__file__).parent
MODULES = (turns, streams, saves, logs, sessions, recoveries, caches, owners)
SCENARIOS: dict[str, Scenario] = {name: each for module in MODULES for name, each in module.SCENARIOS.items()}
"""Every scenario by its name, which is also the id of its two tests."""

INTRODUCTION = """\
# The casebook: public failures as scenarios

What went wrong in public, retold as small programs. For each kind of failure there is a scenario: a naive program that
crashlab must flag, by a kind that the test states, and a correct one that it must leave alone. The facts are those of
the reports; the programs, their data and their words are our own. A name such as CC-473 is that of a case, not of
anything in this repository.

`test_scenarios.py` runs each scenario both ways: `test_the_naive_form_is_flagged[name]` and
`test_the_correct_form_is_clean[name]`, the latter once where scenarios share it. `cases.toml` is the list of cases;
this page is made of it, by `python -m tests.casebook.table`, and `test_table.py` holds the two together.
"""

EVENT_LOG = """\
The event log of longrun was put in the place of those that broke in these cases, and stands:
`test_the_event_log_stands_the_case[id]` in `test_event_log.py`, beside a naive log that does not."""


@dataclass(frozen=True)
class Case:
    """One public failure. ``source`` is "" where it was measured; either ``scenarios`` or ``reason`` is set.

    ``note`` says where the scenario or the verdict departs from what was told.
    """

    id: str
    window: str
    source: str = ""
    scenarios: tuple[str, ...] = ()
    reason: str = ""
    note: str = ""

    @property
    def link(self) -> str:
        """The name of the case, leading to where it was told."""
        return f"[{self.id}]({self.source})" if self.source else f"{self.id} (measured)"


def read_cases(path: Path = FOLDER / "cases.toml") -> list[Case]:
    """Every case. Raises TypeError for a field that no case has."""
    listed = tomllib.loads(path.read_text())["case"]
    return [Case(**{**fields, "scenarios": tuple(fields.get("scenarios", ()))}) for fields in listed]


def module_of(name: str) -> str:
    """The module that holds a scenario."""
    return next(module.__name__.rpartition(".")[2] for module in MODULES if name in module.SCENARIOS)


def render(cases: Sequence[Case]) -> str:
    """The page: how many are covered, one row per case that is, one line per case that is left."""
    covered = [case for case in cases if case.scenarios]
    told = {name for case in covered for name in case.scenarios}
    lines = [
        INTRODUCTION,
        f"{len(covered)} of {len(cases)} cases are covered, by {len(told)} scenarios.",
        "",
        "| case | where it broke | scenario | faults | flagged as |",
        "|---|---|---|---|---|",
    ]
    for case in covered:
        for name in case.scenarios:
            faults, kinds = SCENARIOS[name].faults.replace(",", ", "), ", ".join(sorted(SCENARIOS[name].kinds))
            where = f"{name} (`{module_of(name)}`)"
            lines.append(f"| {case.link} | {case.window} | {where} | {faults} | {kinds} |")
    lines += ["", "Where a scenario or its verdict departs from what was told:", ""]
    lines += [f"- {case.link}: {case.note}." for case in covered if case.note]
    lines += ["", "Left out:", ""]
    lines += [f"- {case.link}, {case.window}: {case.reason}." for case in cases if not case.scenarios]
    lines += ["", EVENT_LOG, "", ", ".join(case.link for case in cases if case.id in TRIALS) + "."]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    (FOLDER / "README.md").write_text(render(read_cases()))
