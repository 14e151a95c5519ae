"""Exercise 6.1: the audited harness has the faults that are said, and a claim that is none is told."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING

import pytest

from crashcourse import catalog
from crashcourse.audited import FAULTY, HARNESS, audited
from crashcourse.explain import stage
from crashcourse.judges.audit import ALTERS, CANDIDATES
from crashcourse.marking import mark
from longrun.checkpoint import correct

if TYPE_CHECKING:
    from pathlib import Path

    from crashcourse.result import Row

EXERCISE = catalog.find("audit")


def test_eight_pieces_are_faulty_and_each_can_be_a_candidate() -> None:
    """They differ from the correct harness, nothing else does, and each is tried in some family."""
    differ = {
        each.name for each in fields(HARNESS) if getattr(HARNESS, each.name) != getattr(correct.HARNESS, each.name)
    }
    assert differ == set(FAULTY)
    assert {piece for pieces in CANDIDATES.values() for piece in pieces} == set(FAULTY)


def test_the_mends_that_alter_the_trace_are_those_that_are_listed() -> None:
    """With all others a crash state has the same id before and after."""
    ops = {}
    for piece in ("", *FAULTY):
        with stage(audited(mended=piece)) as scene:
            ops[piece] = len(scene.trace.ops)
    assert {piece for piece in FAULTY if ops[piece] != ops[""]} == set(ALTERS)


def judged(directory: Path, text: str) -> dict[str, Row]:
    """The rows of an answer."""
    file = directory / EXERCISE.file
    file.write_text(text)
    return {row.id: row for row in mark(EXERCISE, file, out=directory).rows}


def claim(family: str = "kill", point: str = "kill@36", kind: str = "duplicate-effect") -> str:
    """One witness."""
    return f'[w1]\nfamily = "{family}"\npoint = "{point}"\nkind = "{kind}"\n'


def test_a_witness_counts_for_the_fault_that_it_shows_alone(tmp_path: Path) -> None:
    """And for no other."""
    rows = judged(tmp_path, claim())
    assert [name for name, row in rows.items() if row.verdict == "consistent"] == ["fault.2", "precision"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (claim(kind="lost"), "at kill@36 the harness is duplicate-effect under kill, not lost"),
        (claim(point="kill@20"), "at kill@20 the harness is consistent under kill"),
        (claim(point="kill@99999"), "kill@99999"),
        (claim(point="rm -rf"), "rm -rf"),
        (claim("damage", "damage@50-checkpoint.json:bit:110", "accepted-damage"), "another one in each run"),
        (claim("damage", "damage@50-checkpoint.json:bit:99999999", "accepted-damage"), "bit:99999999"),
        (claim(family="magic"), "w1.family"),
        (claim(kind="bad luck"), "w1.kind"),
        (claim(point="kill@36\\u0000"), "kill@36"),
        ('[w1]\nfamily = "kill"\npoint = 36\nkind = "lost"\n', "w1.point"),
        ('[w1]\nfamily = "kill"\n', "w1.point is missing"),
    ],
)
def test_a_claim_that_is_none_is_told_and_costs_precision(tmp_path: Path, text: str, said: str) -> None:
    """By its own words."""
    row = judged(tmp_path, text)["precision"]
    assert row.verdict == "violation"
    assert row.finding is not None
    assert said in row.finding.found


@pytest.mark.parametrize(("text", "said"), [("", "there is no witness"), ("[w11]\n", "w11"), ("w1 = 3\n", "")])
def test_a_file_without_witnesses_is_told(tmp_path: Path, text: str, said: str) -> None:
    """In its first case."""
    row = judged(tmp_path, text)["fault.1"]
    assert (row.verdict, said in row.message) == ("violation", True)
