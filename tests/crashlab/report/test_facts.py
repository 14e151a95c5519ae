"""What the result model takes from the trace and from a crash state: the bytes that a crash took, up to a size."""

from __future__ import annotations

import dataclasses
import json

import pytest

from crashlab import trace as t
from crashlab.crash.ids import state_of
from crashlab.report import facts
from crashlab.report.facts import FILES_AT_MOST, MOMENTS_AT_MOST, changes_of, compare, moments_of
from crashlab.report.model import CHANGES, Difference, FileChange, Moment
from tests.crashlab.report.samples import tree_of
from tests.crashlab.traces import ack, call, create, effect, save_point, trace_of, write

TRACE = trace_of(
    call({"n": 1}),
    create("a", 10),
    write("a", 10, b"old" * 3000),
    (t.Fsync, {"path": "dir/a", "inode": 10}),
    (t.Fsync, {"path": "dir", "inode": 1}),
    ack({"n": 1}),
    create("b", 11),
    write("b", 11, b"new"),
    save_point("A"),
    effect("mail", to="ada"),
    (t.Rename, {"path": "dir/b", "to": "dir/a", "inode": 11}),
    ack({"n": 2}),
)


def changes(state_id: str) -> dict[str, FileChange]:
    """What the crash did, by path."""
    return {each.path: each for each in changes_of(state_of(TRACE, state_id, profile="ext4,xfs,btrfs"))}


def test_a_kill_between_ops_changes_nothing() -> None:
    """What was written is there, and the report can say so."""
    assert {path: each.change for path, each in changes("kill@8").items()} == {"a": "same", "b": "same"}
    assert changes("kill@8")["a"] == FileChange(path="a", change="same", before=9000, after=9000)


def test_a_kill_inside_of_a_write_shows_where_the_bytes_end() -> None:
    """Before is what the whole write would have made."""
    cut = changes("kill@3+4096")["a"]
    assert (cut.change, cut.before, cut.after, cut.differs) == ("changed", 9000, 4096, 9000 - 4096)
    assert cut.parts[0].at == 4096
    assert bytes.fromhex(cut.parts[0].before) == (b"old" * 3000)[4096:4144]
    assert cut.parts[0].after == ""


def test_a_power_loss_shows_lost_bytes_and_old_names() -> None:
    """A lost write is other bytes; a lost rename is a name that is back."""
    lost = changes("power@10-8")
    assert (lost["b"].change, lost["b"].before, lost["b"].after) == ("changed", 3, 0)
    back = changes("power@12-11")
    assert (back["a"].change, back["b"].change) == ("changed", "back")
    assert len(back["b"].parts) == 1
    assert back["a"].before == 3
    gone = changes("power@12-all")
    assert {path: each.change for path, each in gone.items()} == {"a": "changed"}


@pytest.mark.parametrize(("fault", "state_id"), [("race", "race@10"), ("error", "error@8:EIO")])
def test_from_a_run_that_went_on_nothing_was_taken(fault: str, state_id: str) -> None:
    """Nobody may read of bytes that a second owner, or an error, has taken; a power loss after an error takes some."""
    state = state_of(TRACE, "power@10-8", profile="ext4,xfs,btrfs")
    assert changes_of(dataclasses.replace(state, fault=fault, id=state_id)) == ()
    assert changes_of(dataclasses.replace(state, fault="error", id="error@8:failed-fsync/power@10-8")) != ()


def test_what_changed_comes_first_and_the_rest_is_counted() -> None:
    """A directory of a thousand files does not make a report of a thousand files."""
    names = [t.Create(n=4 + n, path=f"dir/f{n:04}", inode=10 + n) for n in range(1000)]
    old = tree_of(*names)
    new = old.apply(t.Write(n=2000, path="dir/f0999", inode=1009, offset=0, data=b"x"))
    found = compare(old, new)
    assert len(found) == FILES_AT_MOST + 1
    assert (found[0].path, found[0].change) == ("f0999", "changed")
    assert (found[-1].change, found[-1].path) == ("more", "992 more, of which 0 changed")


@pytest.mark.parametrize(
    ("old", "new", "differs", "parts"),
    [
        (b"", b"", 0, []),
        (b"abc", b"abd", 1, [(0, b"abc", b"abd")]),
        (b"abc", b"", 3, [(0, b"abc", b"")]),
        (b"\0" * 5000 + b"x", b"\0" * 5000 + b"y", 1, [(4992, b"\0" * 8 + b"x", b"\0" * 8 + b"y")]),
        (b"a" * 500, b"b" * 500, 500, [(n, b"a" * 48, b"b" * 48) for n in (0, 48, 96)]),
    ],
    ids=["equal", "one", "gone", "far", "all"],
)
def test_the_bytes_that_differ(old: bytes, new: bytes, differs: int, parts: list[tuple[int, bytes, bytes]]) -> None:
    """How many, and the first three stretches of 48, from the start of a line of sixteen."""
    expected = tuple(Difference(at=at, before=a.hex(), after=b.hex()) for at, a, b in parts)
    assert facts._differences(old, new) == (differs, expected)


def test_a_finding_stays_small() -> None:
    """Whatever files there are, less than sixteen kilobytes of JSON."""
    size = 40_000
    ops = [t.Create(n=4 + n, path=f"dir/{n}{'x' * 200}", inode=10 + n) for n in range(50)]
    old = tree_of(*ops)
    new = old
    for n in range(50):
        old = old.apply(t.Write(n=100, path="", inode=10 + n, offset=0, data=b"a" * size))
        new = new.apply(t.Write(n=100, path="", inode=10 + n, offset=0, data=b"b" * size))
    text = json.dumps([[each.path, [(p.at, p.before, p.after) for p in each.parts]] for each in compare(old, new)])
    assert len(text) < 16_000


def test_every_word_for_a_change_is_known() -> None:
    """The model's list and what is made here are one."""
    seen = {each.change for state in ("kill@8", "power@12-11") for each in changes(state).values()}
    assert seen < set(CHANGES)
    assert {"same", "changed", "back"} == seen


def test_moments_are_save_points_effects_and_acks() -> None:
    """With their numbers, in order, in words."""
    assert moments_of(TRACE) == (
        Moment(n=6, op="ack", text='{"n": 1}'),
        Moment(n=9, op="save point", text="A"),
        Moment(n=10, op="effect", text="mail to=ada"),
        Moment(n=12, op="ack", text='{"n": 2}'),
    )


def test_moments_are_not_without_end() -> None:
    """A run of a million acks has a report all the same."""
    assert len(moments_of(trace_of(*(ack(n) for n in range(MOMENTS_AT_MOST + 5))))) == MOMENTS_AT_MOST
