"""Laws of the power-loss model, over random programs of files, links, directories and barriers."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crashlab import trace as t
from crashlab.crash import rules, shapes
from crashlab.crash.kill import kill_states
from crashlab.crash.membership import contains, within
from crashlab.crash.moments import Moment
from crashlab.crash.power import PowerLoss
from crashlab.crash.profiles import parse_profile
from crashlab.crash.recipes import id_of, recipe_of
from crashlab.tree import File, Tree
from tests.crashlab.crash.power_traces import PROGRAMS, Program, digests

if TYPE_CHECKING:
    from collections.abc import Callable

PROFILES = ("ext4", "ext4[noauto_da_alloc]", "ext4[dioread_lock]", "ext4[data=journal]", "xfs", "btrfs", "posix")
LARGE = 3000
"""Programs with more states than this are passed over: the laws are about single states."""


def enumerated(program: Program, profile: str) -> set[int] | None:
    """All digests, or None where there are too many to hold against others."""
    loss = program.loss(profile)
    found = {recipe.digest for recipe in itertools.islice(loss.states(), LARGE)}
    return None if len(found) == LARGE or loss.counts.skipped or loss.counts.skipped_cuts else found


@pytest.mark.parametrize("profile", [each for each in PROFILES if each != "posix"])
@given(program=PROGRAMS)
def test_posix_holds_the_states_of_every_other_profile(profile: str, program: Program) -> None:
    """States of a file system are states of the weakest profile, moment by moment."""
    loss, posix = program.loss(profile), program.loss("posix")
    for recipe in itertools.islice(loss.states(), 150):
        assert within(posix.cuts, loss.moments[recipe.done], loss.tree(recipe)), id_of(loss, recipe)


@pytest.mark.parametrize("profile", [each for each in PROFILES if each != "posix"])
@given(program=PROGRAMS)
def test_posix_has_the_digests_of_every_other_profile(profile: str, program: Program) -> None:
    """The same for what enumerating gives: the digests of a file system are among those of the weakest profile."""
    posix = enumerated(program, "posix")
    if posix is not None:
        assert digests(program.trace, profile) <= posix


@pytest.mark.parametrize("profile", PROFILES)
@given(program=PROGRAMS, at=st.integers(0, 20), kind=st.sampled_from(["fsync", "data", "directory", "sync"]))
def test_one_more_barrier_adds_no_state(profile: str, program: Program, at: int, kind: str) -> None:
    """A barrier only ever takes states away."""
    before = enumerated(program, profile)
    if before is None:
        return
    ops = list(program.ops)
    at = min(at, len(ops))
    files = sorted({op.inode for op in ops[:at] if isinstance(op, (t.Create, t.Write))})
    barrier: t.Op
    if kind == "sync" or (kind != "directory" and not files):
        barrier = t.Sync(n=at + 1)
    elif kind == "directory":
        barrier = t.Fsync(n=at + 1, path="dir", inode=1)
    else:
        barrier = t.Fsync(n=at + 1, path="?", inode=files[0], data_only=kind == "data")
    longer = Program()
    longer.base = program.base
    for op in [*ops[:at], barrier, *ops[at:]]:
        longer.ops.append(replace(op, n=len(longer.ops) + 1))
    assert digests(longer.trace, profile) <= before


@pytest.mark.parametrize("profile", PROFILES)
@given(program=PROGRAMS)
def test_a_full_sync_leaves_one_state(profile: str, program: Program) -> None:
    """After sync has returned there is exactly what the running system sees; by F5 only once files were fsynced."""
    if parse_profile(profile).sync_forces is not rules.j8_all:
        for inode in [inode for inode, node in program.tree.nodes.items() if isinstance(node, File)]:
            program.add(t.Fsync, path="", inode=inode)
    program.add(t.Sync)
    loss = program.loss(profile)
    last = [recipe for recipe in loss.states() if recipe.done == len(program.ops)]
    assert [cut.count for cut in loss.cuts_at(loss.moments[len(program.ops)])] == [1]
    assert len(last) == 1
    assert loss.tree(last[0]).digest == program.tree.digest


@pytest.mark.parametrize("profile", PROFILES)
@given(program=PROGRAMS)
def test_a_kill_between_two_ops_is_a_power_loss_that_loses_nothing(profile: str, program: Program) -> None:
    """What the running system sees is a state at every moment."""
    loss = program.loss(profile)
    for state in kill_states(program.trace):
        if state.cut_bytes is None:
            assert within(loss.cuts, Moment(state.done, state.done), state.tree), state.id


@pytest.mark.parametrize("profile", PROFILES)
@given(program=PROGRAMS)
def test_no_state_lies_between_the_moments(profile: str, program: Program) -> None:
    """Power lost at any op, or inside one, leaves a state of the next moment that is gone through."""
    loss = program.loss(profile)
    for done in range(len(program.ops)):
        following = min(each for each in loss.moments.values() if each.done >= done)
        for started in (done, done + 1):
            if started > following.started:
                continue
            for cut in loss.cuts_at(Moment(done, started))[:20]:
                for ways in ([0] * len(cut.varied), [slot.count - 1 for slot in cut.varied]):
                    assert within(loss.cuts, following, cut.tree(ways)), (done, started)


@given(program=PROGRAMS)
def test_data_journal_without_barriers_is_a_kill(program: Program) -> None:
    """With data=journal and nothing forced the states are the kill states at 4096 steps, none else."""
    calm = Program()
    calm.base = program.base
    for op in program.ops:
        if not isinstance(op, (t.Fsync, t.Sync, t.Ack)):
            unsynced = {"sync": ""} if isinstance(op, t.Write) else {}
            calm.ops.append(replace(op, n=len(calm.ops) + 1, **unsynced))
    killed = {shapes.digest_of_tree(state.tree) for state in kill_states(calm.trace)}
    assert digests(calm.trace, "ext4[data=journal]") == killed


@pytest.mark.parametrize("profile", [*PROFILES, "xfs[sector_bytes=512]"])
@given(program=PROGRAMS)
def test_what_is_enumerated_is_contained(profile: str, program: Program) -> None:
    """Each state is found by contains, its digest is that of its tree, and its id leads back to it."""
    loss = program.loss(profile)
    for recipe in itertools.islice(loss.states(), 60):
        tree = loss.tree(recipe)
        assert recipe.digest == (shapes.digest_of_tree(tree) + loss.outside(recipe.done)) & shapes.MASK
        assert within(loss.cuts, loss.moments[recipe.done], tree), id_of(loss, recipe)
        again = recipe_of(loss, id_of(loss, recipe))
        assert (again.done, again.digest) == (recipe.done, recipe.digest), id_of(loss, recipe)


def at_the_end(loss: PowerLoss, moment: Moment) -> dict[int, Tree] | None:
    """The states of one moment, by what their trees sum up to, or None where they are too many."""
    cuts = loss.cuts_at(moment)
    if sum(cut.count for cut in cuts) > LARGE or loss.counts.skipped_cuts:
        return None
    trees = (cut.tree(ways) for cut in cuts for ways in itertools.product(*(range(slot.count) for slot in cut.varied)))
    return {shapes.digest_of_tree(tree): tree for tree in trees}


@pytest.mark.parametrize("profile", PROFILES)
@given(program=PROGRAMS, other=st.sampled_from(PROFILES))
def test_what_is_contained_is_enumerated(profile: str, program: Program, other: str) -> None:
    """A state of another profile is contained exactly where it is enumerated."""
    here = program.loss(profile)
    end = here.moments[len(program.ops)]
    mine = at_the_end(here, end)
    if mine is None:
        return
    strange = program.loss(other)
    for recipe in itertools.islice(strange.states(), 60):
        tree = strange.tree(recipe)
        assert within(here.cuts, end, tree) == (shapes.digest_of_tree(tree) in mine)


MUTATIONS = ("bytes", "zeros", "shorter", "longer", "mode", "unlink", "rename", "link", "copy")


def mutated(tree: Tree, kind: str, pick: int) -> Tree | None:
    """A tree of which one file was changed in one way, or None where it has none."""
    files = [(path, inode, node) for path, inode, node in tree.walk("dir") if isinstance(node, File)]
    if not files:
        return None
    path, inode, node = files[pick % len(files)]
    on, size = {"n": 1, "path": path, "inode": inode}, node.content.size
    at = pick * 4096 % (size + 1)
    copy = tree.apply(t.Create(n=1, path="dir/copy", inode=999))
    changed: dict[str, Callable[[], Tree]] = {
        "bytes": lambda: tree.apply(t.Write(**on, offset=at, data=b"?")),
        "zeros": lambda: tree.apply(t.Write(**on, offset=at // 4096 * 4096, data=bytes(min(size, 4096)))),
        "shorter": lambda: tree.apply(t.Truncate(**on, size=at)),
        "longer": lambda: tree.apply(t.Truncate(**on, size=size + 1)),
        "mode": lambda: tree.apply(t.Chmod(**on, mode=0o600 if pick % 2 else 0o644)),
        "unlink": lambda: tree.apply(t.Unlink(**on)),
        "rename": lambda: tree.apply(t.Rename(**on, to=("dir/a", "dir/b", "dir/z")[pick % 3])),
        "link": lambda: tree.apply(t.Link(n=1, path="dir/copy", inode=inode)),
        "copy": lambda: copy.apply(t.Write(n=2, path="dir/copy", inode=999, offset=0, data=node.content.read())),
    }
    return changed[kind]()


@pytest.mark.parametrize("profile", PROFILES)
@given(program=PROGRAMS, kind=st.sampled_from(MUTATIONS), pick=st.integers(0, 5))
def test_a_mutant_is_contained_only_where_it_is_enumerated(
    profile: str, program: Program, kind: str, pick: int
) -> None:
    """A state in which one file was changed, moved or doubled is contained exactly where it is a state again."""
    loss = program.loss(profile)
    end = loss.moments[len(program.ops)]
    mine = at_the_end(loss, end) or {}
    for tree in itertools.islice(mine.values(), 20):
        mutant = mutated(tree, kind, pick)
        if mutant is not None:
            assert within(loss.cuts, end, mutant) == (shapes.digest_of_tree(mutant) in mine)


def test_equal_sums_are_equal_digests() -> None:
    """Two states of a trace have the same number exactly where their trees have the same digest."""
    program = Program(a=5000).create("b").write("b", 5000).link("b", "c").rename("b", "a").ack().unlink("c")
    loss = PowerLoss(program.trace, parse_profile("posix"))
    trees = {recipe.digest: (loss.tree(recipe).digest, loss.outside(recipe.done)) for recipe in loss.states()}
    assert len(set(trees.values())) == len(trees) == loss.counts.unique


def test_contains_takes_names_and_numbers() -> None:
    """The public function reads profiles from text and moments from a number of ops."""
    program = Program().create("a").ack()
    assert contains(program.trace, 2, program.base, "ext4")
    assert not contains(program.trace, 2, Program(z=1).base, "ext4")
