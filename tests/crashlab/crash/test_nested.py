"""A recovery behind the run that crashed: its ops over the same files, its states, their ids and the way back."""

from __future__ import annotations

import dataclasses
import random
from collections import Counter

import pytest

from crashlab import UsageError
from crashlab import trace as t
from crashlab.crash.kill import kill_states
from crashlab.crash.losses import Losses
from crashlab.crash.nested import Recovery
from crashlab.crash.profiles import parse_profiles
from crashlab.crash.states import CrashState, prefixes_of
from crashlab.tree import Directory, File, Node, Tree

BASE = Tree({0: Directory({"dir": 1}), 1: Directory()})
PROFILES = parse_profiles("ext4,xfs,btrfs")
RUN: tuple[t.Op, ...] = (
    t.Create(n=1, path="dir/a.tmp", inode=2),
    t.Write(n=2, path="dir/a.tmp", inode=2, offset=0, data=b"a" * 9000),
    t.Rename(n=3, path="dir/a.tmp", inode=2, to="dir/a"),
    t.Effect(n=4, name="mail"),
    t.Ack(n=5, value=1),
    t.Create(n=6, path="dir/b", inode=3),
)
RECOVERY: tuple[t.Op, ...] = (
    t.Create(n=1, path="dir/new", inode=9),
    t.Write(n=2, path="dir/new", inode=9, offset=0, data=b"n" * 5000),
    t.Effect(n=3, name="mail"),
    t.Rename(n=4, path="dir/new", inode=9, to="dir/a"),
    t.Fsync(n=5, path="dir", inode=1),
)
TRACE = t.Trace(root="/r", base=BASE, ops=RUN)


def killed(done: int, cut_bytes: int | None = None) -> CrashState:
    """A kill of the run."""
    return prefixes_of(TRACE).killed(done, cut_bytes)


def renumbered(tree: Tree) -> Tree:
    """The tree as a recorder reads it in: the same names, other numbers for the files below ``dir``."""
    numbers = {inode: inode if inode < 2 else 40 + inode for inode in tree.nodes}
    nodes: dict[int, Node] = {}
    for inode, node in tree.nodes.items():
        if isinstance(node, Directory):
            entries = {name: numbers[each] for name, each in node.entries.items()}
            nodes[numbers[inode]] = dataclasses.replace(node, entries=entries)
        else:
            nodes[numbers[inode]] = node
    return Tree(nodes)


def recovery_of(outer: CrashState, ops: tuple[t.Op, ...] = RECOVERY) -> Recovery:
    """A recovery from ``outer`` that was recorded under other inode numbers."""
    return Recovery(outer, renumbered(outer.tree), ops, profiles=PROFILES)


def after(state: CrashState) -> Recovery:
    """A recovery from a state after a power loss; its base is what was there."""
    return Recovery(state, state.tree, (t.Create(n=1, path="dir/new", inode=99),), profiles=PROFILES)


@pytest.mark.parametrize("outer", [killed(3), killed(1, 4096), killed(5)], ids=lambda state: state.id)
def test_after_a_kill_the_ops_go_on_over_the_same_files(outer: CrashState) -> None:
    """The whole trace leads from the first tree to what the recovery made of the killed one."""
    recovery = recovery_of(outer)
    at_start = prefixes_of(recovery.trace).tree(recovery.start)
    assert at_start.digest == outer.tree.digest
    expected = outer.tree
    for op in RECOVERY:
        moved = dataclasses.replace(op, inode=77) if isinstance(op, t.FileOp) and op.inode == 9 else op
        expected = expected.apply(moved)
    assert prefixes_of(recovery.trace).tree(len(recovery.trace.ops)).digest == expected.digest
    assert len(recovery.trace.ops) == outer.last_op + len(RECOVERY)


def test_a_file_that_both_change_is_one_file() -> None:
    """A write of the recovery meets the inode of the run's file, whatever its recorder called it."""
    outer = killed(3)
    write = t.Write(n=1, path="dir/a", inode=42, offset=0, data=b"b")
    recovery = recovery_of(outer, (write,))
    (moved,) = recovery.ops
    assert isinstance(moved, t.Write)
    assert (moved.n, moved.inode) == (4, 2)


def test_after_a_power_loss_the_base_is_durable() -> None:
    """Only what was told is before the recovery; no loss takes anything of the run."""
    losses = Losses(TRACE, PROFILES)
    outer = losses.one("power@5-2")
    recovery = after(outer)
    assert [type(op) for op in recovery.trace.ops] == [t.Effect, t.Ack, t.Create]
    kept = {path for path, _, _ in outer.tree.walk()}
    for state in recovery.losses.states():
        assert kept <= {path for path, _, _ in state.tree.walk()}


def test_after_a_kill_power_may_still_take_what_the_run_wrote() -> None:
    """The rename of the run is not forced by the recovery's own ops before its sync."""
    recovery = recovery_of(killed(3))
    names = {frozenset(path for path, _, _ in state.tree.walk("dir")) for state in recovery.losses.states()}
    assert frozenset() in names
    ids = {recovery.lost(state).id for state in recovery.losses.states()}
    assert any("0:" in each for each in ids)


def test_what_the_recovery_syncs_is_forced_with_the_run_s_past() -> None:
    """After fsync of the directory no state lacks the name that the killed run gave."""
    sync = t.Fsync(n=1, path="dir", inode=1)
    recovery = recovery_of(killed(3), (sync, t.Create(n=2, path="dir/z", inode=9)))
    for state in recovery.losses.states():
        if state.done > recovery.start:
            assert state.tree.lookup("dir/a") is not None


@pytest.mark.parametrize("done", range(len(RUN) + 1))
def test_every_id_leads_back_to_its_state(done: int) -> None:
    """Of each recovery from a kill all kills and all power losses are found again by the last part of their ids."""
    recovery = recovery_of(killed(done))
    states = [*recovery.kills(), *map(recovery.lost, recovery.losses.states())]
    assert len({state.id for state in states}) == len(states)
    for state in states:
        outer, _, crash = state.id.rpartition("/")
        assert outer == f"kill@{done}"
        again = recovery.one(crash)
        assert (again.id, again.tree.digest, again.digest) == (state.id, state.tree.digest, state.digest)


def test_ids_of_depth_two_name_the_run_of_each_lost_op() -> None:
    """A recovery from a killed recovery of a killed run may lose ops of all three, each by its run and number."""
    first = recovery_of(killed(3))
    (middle,) = (state for state in first.kills() if state.id == "kill@3/kill@2")
    second = Recovery(
        middle, renumbered(middle.tree), (t.Create(n=1, path="dir/c", inode=70),), profiles=parse_profiles("posix")
    )
    ids = [second.lost(state).id for state in second.losses.states()]
    lost = {item for each in ids for item in each.partition("-")[2].split(",")}
    assert {"0:3", "1:1", "1"} <= lost, sorted(lost)
    assert second.op_words(1) == "op 1 of the run"
    assert second.op_words(4) == "op 1 of recovery 1"
    assert second.op_words(6) == "op 1 of recovery 2"
    for each in ids:
        assert second.one(each.rpartition("/")[2]).id == each


def test_kills_are_every_prefix_and_every_page_end() -> None:
    """As for a run: n + 1 states and one more per cut, each with the effects of both."""
    recovery = recovery_of(killed(5))
    kills = list(recovery.kills())
    assert [state.id for state in kills] == [f"kill@5/kill@{each}" for each in ("0", "1", "2+4096", "2", "3", "4", "5")]
    assert [len(state.effects) for state in kills] == [1, 1, 1, 1, 2, 2, 2]
    assert {len(state.acks) for state in kills} == {1}
    assert {state.ran for state in kills} == {5}


def test_equal_states_of_run_and_recovery_have_equal_digests() -> None:
    """A recovery that does what the run did next leaves the states that the run left; a doubled effect does not."""
    rest = (
        t.Rename(n=1, path="dir/a.tmp", inode=42, to="dir/a"),
        t.Effect(n=2, name="mail"),
        t.Ack(n=3, value=1),
        t.Create(n=4, path="dir/b", inode=50),
    )
    recovery = recovery_of(killed(2), rest)
    of_run = {state.digest for state in kill_states(TRACE)}
    assert {state.digest for state in recovery.kills()} <= of_run
    doubling = recovery_of(killed(5))
    assert next(doubling.kills()).digest in of_run
    assert not any(state.digest in of_run for state in doubling.kills() if len(state.effects) > 1)


def test_a_report_of_a_recovery_that_died_is_told_apart() -> None:
    """The same files after a recovery that reported an effect unknown, and after one that kept silent."""
    report = t.Unknown(n=1, name="mail")
    silent, told = (recovery_of(killed(3), (first, *RECOVERY[1:2])) for first in (t.SavePoint(n=1, name="x"), report))
    assert silent.one("kill@1").tree.digest == told.one("kill@1").tree.digest
    assert silent.one("kill@1").digest != told.one("kill@1").digest


def test_another_effect_than_recorded_is_told_apart_by_what_it_is() -> None:
    """As many effects, but not the same ones: these are two histories."""
    mail, call = t.Effect(n=1, name="mail"), t.Effect(n=1, name="call")
    digests = [next(reversed(list(recovery_of(killed(3), (op,)).kills()))).digest for op in (mail, call)]
    assert digests[0] != digests[1]
    assert digests[0] == killed(4).digest


@pytest.mark.parametrize("crash", ["kill@9", "kill@0+5", "kill@2+7", "power@9", "power@4-7:1", "power@2-99", "boom"])
def test_an_id_of_no_crash_is_refused(crash: str) -> None:
    """Ops that are not there, cuts off page ends, runs that never were: each refused with a reason."""
    with pytest.raises(UsageError):
        recovery_of(killed(3)).one(crash)


@pytest.mark.parametrize("seed", range(12))
def test_composed_losses_are_those_of_one_long_run(seed: int) -> None:
    """Power lost in a recovery after a kill leaves what it leaves when one run does all those ops without a crash."""
    chooser = random.Random(seed)  # noqa: S311 - a reproducible choice, no secret
    done = chooser.randrange(len(RUN) + 1)
    recovery = recovery_of(killed(done))
    ops = [dataclasses.replace(op, n=done + op.n) for op in RECOVERY]
    ops = [dataclasses.replace(op, inode=77) if isinstance(op, t.FileOp) and op.inode == 9 else op for op in ops]
    long = t.Trace(root="/r", base=BASE, ops=(*RUN[:done], *ops))
    moments = set(recovery.losses.dones)
    wanted = {state.tree.digest for state in Losses(long, PROFILES).states() if state.done in moments}
    assert Counter({state.tree.digest for state in recovery.losses.states()}) == Counter(wanted)
    assert any(isinstance(node, File) for state in recovery.losses.states() for _, _, node in state.tree.walk())
