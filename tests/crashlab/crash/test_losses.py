"""Power losses under several profiles at once: each state once, each id followed back, none forgotten."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given

from crashlab import trace as t
from crashlab.crash import shapes
from crashlab.crash.losses import Losses, losses_of
from crashlab.crash.profiles import parse_profiles
from crashlab.crash.recipes import id_of
from crashlab.errors import UsageError
from tests.crashlab.crash.power_traces import PROGRAMS, Program, digests

EVERY = ("ext4", "xfs", "btrfs", "posix")
LARGE = 2000
"""Programs with more states than this are passed over: the law is about single states."""

# A file is replaced without a barrier: every profile has a state that some other has not.
REPLACED = Program(ck=5000).create("t").write("t", 5000).rename("t", "ck").ack()


def losses(program: Program, profiles: str = ",".join(EVERY), **options: int) -> Losses:
    return Losses(program.trace, parse_profiles(profiles), **options)


@given(program=PROGRAMS)
def test_ids_are_unique_lead_back_and_leave_none_out(program: Program) -> None:
    """One id per state, each the way to its own digest; together they are the states of the single profiles."""
    together = losses(program)
    states = list(itertools.islice(together.states(), LARGE))
    if len(states) == LARGE:
        return
    assert len({state.id for state in states}) == len({state.recipe.digest for state in states}) == len(states)
    assert {state.recipe.digest for state in states} == set().union(
        *(digests(program.trace, profile) for profile in EVERY)
    )
    for state in states[:100]:
        again = together.one(state.id)
        assert (again.recipe.digest, again.digest) == (state.recipe.digest, state.digest), state.id
        assert again.recipe.digest == (
            shapes.digest_of_tree(again.tree) + together._losses[0].outside(again.done) & shapes.MASK
        )
        allowed = together.possible(state)
        assert state.profile in allowed
        assert "posix" in allowed  # the weakest allows what any other does


@given(program=PROGRAMS)
def test_a_tree_leads_back_to_its_state(program: Program) -> None:
    """What a disk shows gets the name that the model has for it; a tree that no profile allows gets none."""
    together = losses(program)
    for state in itertools.islice(together.states(), 60):
        found = together.found(state.tree, state.done)
        assert found is not None
        assert (found.digest, found.recipe.digest) == (state.digest, state.recipe.digest), state.id
        assert together.one(found.id).digest == state.digest
    odd = together.trace.base.apply(t.Create(n=1, path="dir/of a stranger", inode=999))
    assert together.found(odd, 0) is None


def test_profiles_take_turns() -> None:
    """The first states are of all of them, so that what one alone allows is met early."""
    first = [state.profile for state in itertools.islice(losses(REPLACED).states(), 8)]
    assert set(first) == {*EVERY}


@pytest.mark.parametrize("profile", EVERY)
def test_a_single_profile_is_that_of_the_model(profile: str) -> None:
    """The same states in the same order under the same ids."""
    model = REPLACED.loss(profile)
    assert [state.id for state in losses(REPLACED, profile).states()] == [id_of(model, each) for each in model.states()]


def test_all_lost_stands_for_the_first_profile_alone() -> None:
    """For the others it is spelled out: one id must not name two states."""
    for first, other in (("xfs", "ext4"), ("ext4", "posix")):
        assert any(state.id.endswith("-all") for state in losses(REPLACED, other).states())
        together = losses(REPLACED, f"{first},{other}").states()
        assert {state.profile for state in together if state.id.endswith("-all")} == {first}


def test_all_lost_is_that_of_the_first_profile() -> None:
    """The same id, other states: the order of the profiles is part of what was asked."""
    ext4, posix = losses(REPLACED, "ext4,posix").one("power@4-all"), losses(REPLACED, "posix,ext4").one("power@4-all")
    assert (ext4.profile, posix.profile) == ("ext4", "posix")


def test_counts_are_those_of_all_profiles() -> None:
    """States of the model, reached ones and unique ones; moments are the same for all."""
    together = losses(REPLACED)
    unique = len(list(together.states()))
    singles = []
    for profile in EVERY:
        single = losses(REPLACED, profile)
        list(single.states())
        singles.append(single.counts)
    assert together.counts.states == sum(each.states for each in singles)
    assert together.counts.reached == sum(each.reached for each in singles) == together.counts.states
    assert together.counts.unique == sum(each.unique for each in singles) > unique
    assert together.moments == singles[0].moments == losses(REPLACED, "xfs").moments


def test_a_bound_leaves_states_out_and_says_so() -> None:
    """Fewer states, the rest counted as skipped."""
    program = Program(ck=40_000).write("ck", 40_000).ack()
    whole, bounded = losses(program, "ext4,posix"), losses(program, "ext4,posix", bound=16)
    assert {state.tree.digest for state in bounded.states()} < {state.tree.digest for state in whole.states()}
    assert bounded.counts.skipped > 0 == whole.counts.skipped
    assert bounded.counts.reached + bounded.counts.skipped == bounded.counts.states == whole.counts.states


def test_the_picks_and_the_core_can_be_chosen() -> None:
    """As for a single profile: none, some, and a core of a few blocks only."""
    program = Program(ck=100_000).write("ck", 100_000)
    reached = {}
    for name, sample, edges in (("core", 0, False), ("edges", 0, True), ("some", 5, True)):
        together = losses(program, "ext4,posix", bound=16, sample=sample, edges=edges)
        list(together.states())
        reached[name] = together.counts.reached, together.counts.sampled
    assert reached == {"core": (2 * 74, 0), "edges": (2 * 9, 0), "some": (2 * 14, 2 * 5)}


def test_an_id_is_read_under_the_first_profile_that_knows_it() -> None:
    """ext4 has an order between names, posix none; the error is that of the first profile."""
    only_posix = losses(REPLACED, "ext4,posix").one("power@4-3n1")
    assert only_posix.profile == "posix"
    assert losses(REPLACED, "ext4,posix").possible(only_posix) == ("posix",)
    with pytest.raises(UsageError, match="under ext4"):
        losses(REPLACED, "ext4,xfs").one("power@4-3n1")


def test_a_loss_may_leave_the_files_of_another_moment() -> None:
    """Until a barrier stands between: then what was there before it never comes back."""
    before = REPLACED.base
    assert losses(REPLACED).may_leave(before, 4)
    synced = Program(ck=5000).create("t").write("t", 5000).fsync("t").rename("t", "ck").fsync().ack()
    assert losses(synced).may_leave(before, 4)
    assert not losses(synced).may_leave(before, 6)


def test_what_a_loss_took_is_told_by_op() -> None:
    """The same words whichever profile found it."""
    lost = losses(REPLACED)
    assert {n: mark.words for n, mark in lost.marks(lost.one("power@4-2d0,2d1")).items()} == {
        2: "its size is there, its bytes are not"
    }
    assert lost.marks(lost.one("power@4")) == {}


def test_losses_of_a_trace_are_kept_until_another_is_asked_for() -> None:
    """A worker follows many ids of one trace."""
    profiles = parse_profiles("ext4")
    first, other = REPLACED.trace, Program().create("a").trace
    kept = losses_of(first, profiles, ())
    assert losses_of(first, profiles, ()) is kept
    assert losses_of(first, parse_profiles("xfs"), ()) is not kept
    assert losses_of(first, profiles, ("*-shm",)) is not kept
    assert losses_of(first, profiles, ()) is kept
    assert losses_of(other, profiles, ()).trace is other
    assert losses_of(first, profiles, ()) is not kept


def test_what_no_profile_knows_is_refused_with_all_of_them() -> None:
    """The reader must not think of the first one only."""
    with pytest.raises(UsageError, match="under any of ext4, xfs"):
        losses(REPLACED, "ext4,xfs").one("power@4-3n1")
