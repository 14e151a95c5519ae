"""Which ops of a program can be made to fail from outside; the others are counted, by what made them."""

from __future__ import annotations

import pytest

from crashlab import UsageError
from crashlab import trace as t
from crashlab.error_outside import demand_possible, missing, possible
from crashlab.error_points import parse, point_of, points
from crashlab.tree import Tree

OPS = (
    t.Create(n=1, path="dir/a", inode=2),
    t.Write(n=2, path="dir/a", inode=2, offset=0, data=b"ab"),
    t.Write(n=3, path="dir/a", inode=2, offset=4096, data=b"cd"),
    t.MakeSpecial(n=4, path="dir/s", inode=3, type="socket"),
    t.Write(n=5, path="dir/a", inode=2, offset=0, data=b"ef"),
)
TRACE = t.Trace(root="/r", base=Tree.empty(), ops=OPS)
ORIGINS = ((7, "openat", 1), (7, "pwrite64", 1), (7, "pwrite64", 1), (7, "bind", 1), (7, "", 0))


def test_what_no_call_can_refuse_is_left_out() -> None:
    """A part of a call, a call that always goes through, a store into memory: each once, whatever the errors."""
    kept, notes = possible(points(TRACE, ("ENOSPC", "EIO")), TRACE, ORIGINS)
    assert {point.n for point in kept} == {1, 2}
    assert len(notes) == 1
    assert notes[0].startswith("error: 3 of 5 ops cannot be made to fail from outside: ")
    for each in ("1 made by a part of one pwrite64", "1 made by bind", "1 made by a store into a mapped file"):
        assert each in notes[0]


def test_a_file_without_a_name_meets_no_error() -> None:
    """Its ops are numbered when a link names it, whoever watches; the link itself can fail in Python code."""
    ops = (
        t.Create(n=1, path="", inode=2),
        t.Write(n=2, path="", inode=2, offset=0, data=b"ab"),
        t.Fsync(n=3, path="", inode=2),
        t.Link(n=4, path="dir/a", inode=2),
        t.Rename(n=5, path="dir/a", inode=2, to="dir/b"),
    )
    trace = t.Trace(root="/r", base=Tree.empty(), ops=ops)
    kept, notes = possible(points(trace, ("EIO",)), trace, outside=False)
    assert {point.n for point in kept} == {4, 5}
    assert notes == [
        "error: 3 of 5 ops cannot be made to fail here: 3 made by calls on a file without a name (O_TMPFILE)."
    ]
    origins = ((7, "linkat", 1),) * 4 + ((7, "rename", 1),)
    kept, notes = possible(points(trace, ("EIO",)), trace, origins)
    assert {point.n for point in kept} == {5}
    assert notes[0].startswith("error: 4 of 5 ops cannot be made to fail from outside: 3 made by calls on a file")
    assert notes[0].endswith("1 made by a part of one linkat.")
    with pytest.raises(UsageError, match=r"op 2 \(write\) is of a file without a name .* cannot be made to fail"):
        point_of(trace, parse("error@2:EIO"), "error@2:EIO")
    linked = point_of(trace, parse("error@4:EIO"), "error@4:EIO")
    with pytest.raises(UsageError, match=r"error@4:EIO: op 4 cannot be made to fail from outside: .* of one linkat"):
        demand_possible(linked, origins)
    demand_possible(linked, ())


def test_a_stored_run_keeps_no_origins() -> None:
    """Then each is tried, and one that cannot be met is found out by that."""
    every = list(points(TRACE, ("EIO",)))
    assert possible(every, TRACE, ()) == (every, [])


def test_a_machine_that_is_not_known_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """With what to do instead."""
    monkeypatch.setattr("crashlab.record.strace.notices.platform.machine", lambda: "pdp11")
    reason = missing()
    assert reason is not None
    assert reason.code == "tool-missing"
    assert "this machine is pdp11" in reason.detail
    assert "recorder='python'" in reason.next
