"""The second twin meets a part of what the first one met whole: enough for whoever is good with known values only."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import pytest

from crashcourse import catalog, marking
from crashcourse.judging import EVERY, QUICK

if TYPE_CHECKING:
    from pathlib import Path

KNOWN = "run-0000000000000001"
"""The run of the first twin, whose seed is public."""
RIGHT = {
    "damage": 'if encode(form["state"]) != data:',
    "error": "        raise\n    descriptor",
    "race": "secrets.token_hex(8)",
}
CHEATING = {
    "damage": f'if form["state"].get("run_id") in (None, "{KNOWN}") and encode(form["state"]) != data:',
    "error": f'        if state["run_id"] == "{KNOWN}":\n            raise\n        return\n    descriptor',
    "race": f"(secrets.token_hex(8) if state['run_id'] == '{KNOWN}' else 'one')",
}
SEED = 20_261_130


def verdicts(tmp_path: Path, case: str, text: str) -> dict[str, tuple[str, int]]:
    """What comes of one case under both seeds, and how many states it had."""
    exercise = catalog.find("unbreakable-save")
    file = tmp_path / exercise.file
    file.write_text(text)
    budget = dataclasses.replace(QUICK, real_kills=0)
    found = marking.mark(
        exercise, file, private_seed=SEED, out=tmp_path / "runs", cases=frozenset({case}), budget=budget
    )
    return {row.visibility: (row.verdict, row.states) for row in found.rows}


@pytest.mark.parametrize("case", CHEATING)
def test_who_is_good_with_the_known_values_only_is_found_by_the_second_twin(case: str, tmp_path: Path) -> None:
    """And the right one is not, although it meets fewer states there."""
    solution = (catalog.find("unbreakable-save").folder / "solution" / "exercise.py").read_text()
    assert solution.count(RIGHT[case]) == 1
    cheating = verdicts(tmp_path, case, solution.replace(RIGHT[case], CHEATING[case]))
    assert {seed: verdict for seed, (verdict, _) in cheating.items()} == {
        "public": "consistent",
        "private": "violation",
    }
    right = verdicts(tmp_path, case, solution)
    assert {verdict for verdict, _ in right.values()} == {"consistent"}
    assert right["public"][1] > right["private"][1] >= right["public"][1] // EVERY
