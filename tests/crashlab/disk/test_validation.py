"""The model of power loss against real file systems: nothing outside, dangers seen, false promises refuted.

What a run shows is up to the kernel: its threads write when they like. So a danger is tried over several seeds
up to a bound, and a run goes on a little where a promise is not refuted yet. Nothing is repeated where an image
lies outside of the model: one is enough to be red.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from benchmarks import real_runs
from benchmarks.lies import LIES
from benchmarks.programs import PATTERNS, Program, random_program
from benchmarks.real_runs import Way, again, run
from benchmarks.validation import KINDS, Tally, validate
from crashlab import trace as t
from crashlab.crash.profiles import EXT4
from crashlab.disk.disk import RealDisk
from crashlab.disk.enact import judge
from crashlab.errors import UsageError
from tests.crashlab.disk.needs import kinds, needs

if TYPE_CHECKING:
    from pathlib import Path

IMAGES = {"ext4": 900, "ext4[noauto_da_alloc]": 300, "ext4[data=journal]": 300, "xfs": 500, "btrfs": 700}
"""Of the quick profile; a kind that is looked at faster does more."""

FULL = 20_000
CALM = Way(seed=1, actions=["nothing"])


@pytest.mark.parametrize("kind", kinds(*KINDS))
def test_real_disks_agree_with_the_model(kind: str, budget_examples: int) -> None:
    """No image lies outside; every danger told of is seen; every promise that nobody keeps is refuted."""
    wanted = IMAGES[kind] if budget_examples < 100 else FULL
    tally = Tally(kind)
    validate(tally, wanted, seed=1)
    told = [(form["program"], form["way"], form["moment"], form["difference"]) for form in tally.outside]
    assert told == []
    assert tally.open_questions() == []
    assert tally.images.total() >= wanted
    assert set(tally.images) >= {"pattern", "random"}


def test_there_is_a_budget_and_a_false_promise_for_each_kind_that_has_rules_of_its_own() -> None:
    """A kind that is added must be validated; data=journal promises all that one could promise falsely."""
    assert set(IMAGES) == set(KINDS)
    assert {lie.kind for lie in LIES} == set(KINDS) - {"ext4[data=journal]"}


@needs("ext4")
def test_a_wrong_model_is_told_written_and_found_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sabotage: with a promise that ext4 does not keep, images lie outside, and a file brings one back."""
    promised = replace(EXT4, rename_forces=lambda position: position)
    monkeypatch.setattr(real_runs, "judge", lambda disk, trace, **options: judge(disk, trace, promised, **options))
    with RealDisk("ext4") as disk:
        done = run(
            disk, "rename", PATTERNS["tmp, rename over"], Way(seed=1, actions=["nothing"]), per_moment=8, most=60
        )
    forms = done.outside_json("ext4")
    assert forms
    assert all(form["difference"] for form in forms)
    path = tmp_path / "outside.json"
    path.write_text(json.dumps(forms[0]))
    assert again(path, tries=1) == (False, 1), "the true model holds it; the sabotaged run shows it again"
    path.write_text("{}")
    with pytest.raises(UsageError, match="holds no image outside"):
        again(path)


def outside(kind: str, program: Program, *actions: str, seeds: int) -> list[tuple[int, int, list[str]]]:
    """What of a program lies outside, up to the first seed that shows something."""
    with RealDisk(kind) as disk:
        for seed in range(seeds):
            done = run(disk, "by hand", program.trace, Way(seed=seed, actions=actions), per_moment=16, most=100)
            if done.verdict.outside:
                return [(*form["moment"], form["difference"]) for form in done.outside_json(kind)]
    return []


@pytest.mark.xfail(strict=True, reason="the model takes O_SYNC and O_DSYNC for an fsync of the whole file")
@pytest.mark.parametrize("kind", kinds("ext4", "xfs"))
def test_a_synchronous_write_promises_only_the_pages_that_it_wrote(kind: str) -> None:
    """Earlier bytes of the same file, written without the flag, may be lost after a synchronous write returned."""
    program = Program(ck=16_000).write("ck", 16_000).write("ck", 100, 5_000, sync="all").add(t.Ack)
    assert outside(kind, program, "nothing", seeds=3) == []


@pytest.mark.xfail(strict=True, reason="the model ties the size behind the old last block to the write beyond it")
@pytest.mark.parametrize("kind", kinds("xfs"))
def test_a_write_beyond_the_end_may_show_the_old_block_filled_up_with_zeros(kind: str) -> None:
    """xfs writes the old last block on its own, and takes its end for the size: 4096, with zeros behind byte 1000."""
    program = Program(ck=1_000).write("ck", 4_096, 4_096).add(t.Ack).add(t.Ack).add(t.Ack)
    assert outside(kind, program, "first block", "fsync here", seeds=30) == []


def test_random_programs_are_seeded_and_do_all_that_they_should() -> None:
    """The same seed gives the same program; together they use every op that a file system orders."""
    programs = [random_program(seed) for seed in range(150)]
    assert [each.digest for each in programs[:20]] == [random_program(seed).digest for seed in range(20)]
    assert len({each.digest for each in programs}) > 140
    used = {type(op) for each in programs for op in each.ops}
    assert used >= {t.Create, t.Write, t.Truncate, t.Allocate, t.Rename, t.Link, t.Unlink, t.MakeDirectory, t.Sync}
    assert any(op.sync for each in programs for op in each.ops if isinstance(op, t.Write))
    assert {op.data_only for each in programs for op in each.ops if isinstance(op, t.Fsync)} == {True, False}
