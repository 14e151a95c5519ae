"""Real deaths beside computed ones: the sample, and what counts as agreement."""

from __future__ import annotations

from dataclasses import replace

from crashlab import trace as t
from crashlab.confirm import compare, sample
from crashlab.observation import RawRecording
from tests.crashlab.traces import ROOT, create, trace_of, write

TRACE = trace_of(
    create("a", 10), write("a", 10, bytes(20_000)), (t.Rename, {"path": "dir/a", "to": "dir/b", "inode": 10})
)
AFTER_TWO = TRACE.base.apply(TRACE.ops[0]).apply(TRACE.ops[1])
DEATH = RawRecording(root=ROOT, base=TRACE.base, ops=TRACE.ops[:2], last=AFTER_TWO, how="signal")


def test_the_sample_is_seeded_and_holds_cuts() -> None:
    """The same seed gives the same points; half of them are inside writes where there are any."""
    points = sample(TRACE, count=6, seed=1)
    assert points == sample(TRACE, count=6, seed=1)
    assert points != sample(TRACE, count=6, seed=2)
    assert [cut for _, cut in points if cut]
    assert len(points) == len(set(points)) == 6


def test_a_death_that_left_what_was_computed_agrees() -> None:
    """Equal trees: no difference."""
    assert compare(DEATH, 2, 0).difference == ()


def test_a_byte_that_is_not_there_disagrees() -> None:
    """One byte less on the real disk is named with its path."""
    write = TRACE.ops[1]
    assert isinstance(write, t.Write)
    short = TRACE.base.apply(TRACE.ops[0]).apply(replace(write, data=bytes(19_999)))
    difference = compare(replace(DEATH, last=short), 2, 0).difference
    assert len(difference) == 1
    assert difference[0].startswith("dir/a: file 20000 bytes")


def test_a_process_that_did_not_die_disagrees() -> None:
    """A run that returned instead proves nothing."""
    assert "ended by returned" in compare(replace(DEATH, how="returned"), 2, 0).difference[0]


def test_a_death_elsewhere_disagrees() -> None:
    """It was to die at op 3 and only two ops are on record."""
    assert "2 ops were recorded" in compare(DEATH, 3, 0).difference[0]
