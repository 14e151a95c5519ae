"""Readable names of crash points."""

from __future__ import annotations

from crashlab import trace as t
from crashlab.crash.kill import kill_states
from crashlab.crash.places import Places
from tests.crashlab.traces import ack, call, create, effect, save_point, trace_of, write


def test_ops_of_a_store_belong_to_the_call() -> None:
    """A save is named by its call, a cut by the file offset."""
    trace = trace_of(call(1), create("a", 10), write("a", 10, bytes(9000)), ack(1), call(2), ack(2))
    places = [Places(trace).of(state) for state in kill_states(trace)]
    assert places == [
        *("start", "save1.call+", "save1.create+", "save1.data@4096", "save1.data@8192", "save1.data+"),
        *("save1.ack+", "save2.call+", "save2.ack+"),
    ]


def test_ops_of_an_agent_belong_to_the_save_point_they_lead_to() -> None:
    """Files are written first and the save point told after; an effect belongs to the scope before it."""
    trace = trace_of(
        create("c", 10),
        write("c", 10, b"1"),
        (t.Fsync, {"path": "dir/c", "inode": 10}),
        (t.Fsync, {"path": "dir", "inode": 1}),
        save_point("turn5.tool2.S"),
        ack(),
        effect("mail"),
        write("c", 10, b"2"),
        effect("page"),
        write("c", 10, b"3"),
        save_point("turn5.B"),
    )
    places = Places(trace)
    assert [places.op(n) for n in range(1, 12)] == [
        *("turn5.tool2.S.create", "turn5.tool2.S.data", "turn5.tool2.S.fsync", "turn5.tool2.S.dirsync"),
        *("turn5.tool2.S", "turn5.tool2.S.ack", "turn5.tool2.effect", "data", "turn5.tool2.effect"),
        *("turn5.B.data", "turn5.B"),
    ]


def test_an_effect_without_scope_is_counted_by_name() -> None:
    """Without dotted save points the second mail is mail2."""
    trace = trace_of(effect("mail"), effect("page"), effect("mail"))
    assert [Places(trace).after(n) for n in range(4)] == ["start", "mail1+", "page1+", "mail2+"]


def test_spans_cover_every_op_once_in_order() -> None:
    """The rows of the matrix are a partition of the trace."""
    trace = trace_of(call(1), create("a", 10), ack(1), effect("mail"), create("b", 11), save_point("B"), ack())
    spans = Places(trace).spans()
    assert [(span.name, span.first, span.last) for span in spans] == [("save1", 1, 3), ("mail1", 4, 4), ("B", 5, 7)]
