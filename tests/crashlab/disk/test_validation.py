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
from benchmarks.lies import LIES, Lie
from benchmarks.programs import PATTERNS, Program, random_program
from benchmarks.real_runs import Way, again, run
from benchmarks.validation import KINDS, Tally, validate
from crashlab import trace as t
from crashlab.crash import rules
from crashlab.crash.profiles import BTRFS, EXT4, PROFILES, XFS
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


def refuted(lie: Lie, program: Program, *actions: str, seeds: int) -> int:
    """Runs a program until it refutes a promise; how often it did. Nothing may lie outside of the true model."""
    with RealDisk(lie.kind) as disk:
        for seed in range(seeds):
            done = run(disk, lie.name, program.trace, Way(seed=seed, actions=actions), per_moment=16, most=100)
            outside = [(*form["moment"], form["difference"]) for form in done.outside_json(lie.kind)]
            assert outside == []
            if count := lie.outside(done):
                return count
    return 0


BEHIND = Program(ck=16_000).write("ck", 16_000).write("ck", 100, 5_000, sync="all").add(t.Ack)
GROWN = Program(ck=100).write("ck", 12_000, 100).write("ck", 100, 5_000, sync="data").add(t.Ack)


@pytest.mark.parametrize("program", [BEHIND, GROWN], ids=["bytes", "size"])
@pytest.mark.parametrize("kind", kinds("ext4", "xfs"))
def test_a_synchronous_write_promises_only_the_pages_that_it_wrote(kind: str, program: Program) -> None:
    """Earlier bytes of the same file, or a size, made without the flag, may be lost behind a synchronous write."""
    whole = replace(PROFILES[kind], synced_write=rules.b7_whole_file)
    assert refuted(Lie("a synchronous write is an fsync of its file", kind, "J7", whole), program, "nothing", seeds=5)


@needs("btrfs")
@pytest.mark.parametrize("program", [BEHIND, GROWN], ids=["bytes", "size"])
def test_on_btrfs_a_synchronous_write_is_an_fsync_of_its_file(program: Program) -> None:
    """B7: once it has returned, every image has all that was written before."""
    after, before = set[str](), set[str]()
    with RealDisk("btrfs") as disk:
        for seed in range(3):
            done = run(disk, "B7", program.trace, Way(seed=seed, actions=["nothing"]), per_moment=16, most=100)
            for moment, tree in done.verdict.judged:
                file = done.verdict.trees[tree].node("dir/ck")
                (after if moment.done >= len(program.ops) - 1 else before).add(file.content.digest)
    whole = program.tree.node("dir/ck").content.digest
    assert (after, before > {whole}) == ({whole}, True), "before it returned, bytes were lost"


@needs("xfs")
def test_a_write_beyond_the_end_may_show_the_old_block_filled_up_with_zeros() -> None:
    """xfs writes the old last block on its own, and takes its end for the size: 4096, with zeros behind byte 1000."""
    program = Program(ck=1_000).write("ck", 4_096, 4_096).add(t.Ack).add(t.Ack).add(t.Ack)
    lie = Lie("a size is that of the write which made it", "xfs", "F4", replace(XFS, filled=rules.fills_nothing))
    assert refuted(lie, program, "first block", "fsync here", seeds=30)


@pytest.mark.parametrize("kind", kinds("ext4", "xfs", "btrfs"))
def test_sync_loses_an_overwrite_on_xfs_and_nothing_elsewhere(kind: str) -> None:
    """Where an fsync of another file has emptied the log of xfs, sync does not flush the disk."""
    program = Program(ck=8_192, other=10).write("ck", 4_096).append("other", 10).fsync("other").add(t.Sync).add(t.Ack)
    whole = replace(PROFILES[kind], sync_forces=rules.j8_all)
    count = refuted(Lie("sync flushes the disk", kind, "F5", whole), program, "nothing", seeds=3)
    assert bool(count) == (kind == "xfs")


def link(name: str) -> Program:
    """A link that others see, replaced by one from the same directory or from another one, and a stranger's fsync."""
    program = Program(other=10).durable_directory("s")
    program.new(t.MakeSymlink, "ck", target="a").fsync()
    return program.new(t.MakeSymlink, name, target="b").rename(name, "ck").append("other", 10).fsync("other").fsync()


@needs("btrfs")
def test_the_name_of_a_link_vanishes_only_where_it_is_not_swapped_within_its_directory() -> None:
    """B3 for symbolic links: not for those that are swapped; for others the name was seen to be gone."""
    lie = Lie("no name vanishes", "btrfs", "B3", replace(BTRFS, may_vanish=lambda **_: False))
    assert refuted(lie, link("s/tmp"), "nothing", seeds=5)
    assert not refuted(lie, link("tmp"), "nothing", seeds=5)


def test_random_programs_are_seeded_and_do_all_that_they_should() -> None:
    """The same seed gives the same program; together they use every op that a file system orders."""
    programs = [random_program(seed) for seed in range(150)]
    assert [each.digest for each in programs[:20]] == [random_program(seed).digest for seed in range(20)]
    assert len({each.digest for each in programs}) > 140
    used = {type(op) for each in programs for op in each.ops}
    assert used >= {t.Create, t.Write, t.Truncate, t.Allocate, t.Rename, t.Link, t.Unlink, t.MakeDirectory, t.Sync}
    assert any(op.sync for each in programs for op in each.ops if isinstance(op, t.Write))
    assert {op.data_only for each in programs for op in each.ops if isinstance(op, t.Fsync)} == {True, False}
