"""Unknown after a second crash: needless only where the recorded run leaves the same files and all agree."""

from __future__ import annotations

import dataclasses

import pytest

from crashlab import trace as t
from crashlab.crash.kill import kill_states
from crashlab.crash.nested import Recovery
from crashlab.crash.states import CrashState, prefixes_of
from crashlab.nested_honesty import NestedHonesty
from crashlab.tree import Directory, Tree

BASE = Tree({0: Directory({"dir": 1}), 1: Directory()})
MAIL = t.Effect(n=1, name="mail")
TRACE = t.Trace(
    root="/r",
    base=BASE,
    ops=(
        t.Create(n=1, path="dir/pending", inode=2),
        t.SavePoint(n=2, name="A"),
        t.Effect(n=3, name="mail"),
        t.Create(n=4, path="dir/sent", inode=3),
        t.SavePoint(n=5, name="B"),
    ),
)
UNKNOWN = t.Unknown(n=1, name="mail")


def recovery_of(done: int, *ops: t.Op) -> Recovery:
    """A recovery from a kill after ``done`` ops of the run, with these ops."""
    outer = prefixes_of(TRACE).killed(done)
    return Recovery(outer, outer.tree, [dataclasses.replace(op, n=n) for n, op in enumerate(ops, start=1)])


def last(recovery: Recovery) -> CrashState:
    """The recovery killed at its very end."""
    return list(recovery.kills())[-1]


def honesty() -> NestedHonesty:
    """What is known of the kills of the run alone."""
    return NestedHonesty(TRACE, kill_states(TRACE))


@pytest.mark.parametrize("done", range(6))
def test_a_first_crash_is_judged_as_ever(done: int) -> None:
    """Between the mark and the note nobody can tell; before and after, the files can."""
    state = prefixes_of(TRACE).killed(done)
    assert honesty().honest(UNKNOWN, state) == (done in (1, 2, 3, 4))


def test_the_files_of_a_finished_run_tell_after_a_second_crash_too() -> None:
    """A recovery that leaves the files of the end has nothing to ask."""
    done = recovery_of(5, t.SavePoint(n=1, name="C"))
    assert not honesty().honest(UNKNOWN, last(done))


def test_files_before_the_mark_tell_that_nothing_was_done() -> None:
    """An empty directory is what a kill at the very beginning leaves: no mail yet."""
    assert not honesty().honest(UNKNOWN, last(recovery_of(0, t.SavePoint(n=1, name="0"))))


def test_files_that_only_a_recovery_leaves_are_given_the_benefit_of_the_doubt() -> None:
    """The run never leaves a note that it asked, so no state is known that would contradict."""
    asked = recovery_of(3, t.Create(n=1, path="dir/asked", inode=9), t.SavePoint(n=1, name="asked"))
    assert honesty().honest(UNKNOWN, last(asked))


def test_an_effect_that_a_recovery_did_makes_the_files_ambiguous() -> None:
    """The recovery mailed and left nothing: the empty directory may now mean one mail or none."""
    mailed = recovery_of(0, MAIL)
    assert honesty().honest(UNKNOWN, last(mailed))


def test_another_recovery_with_the_same_files_counts_once_it_is_known() -> None:
    """What one recovery did without a trace makes the same files ambiguous for all others."""
    quiet, knowing = last(recovery_of(0, t.SavePoint(n=1, name="0"))), honesty()
    assert not knowing.honest(UNKNOWN, quiet)
    knowing.know(recovery_of(0, MAIL))
    assert knowing.honest(UNKNOWN, quiet)
