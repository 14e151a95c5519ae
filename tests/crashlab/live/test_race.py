"""Two owners of one outside world: a gate that stops once, and a record that both write and read."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import pytest

from crashlab import trace as t
from crashlab.live.race import FIRST, NEVER, SECOND, OutsideRecord, RaceGate, SharedLab

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def shared(folder: Path, who: str, order: list[str]) -> SharedLab:
    """The lab of one owner, as it is made in a process of its own."""
    world, count = OutsideRecord(str(folder / "record"), who), 0

    def sink(event_type: type[t.Op], **fields: Any) -> None:
        nonlocal count
        count += 1
        world.op(event_type(n=count, **fields))

    @contextlib.contextmanager
    def arrive() -> Iterator[None]:
        order.append(who)
        yield

    return SharedLab(folder, sink, _world=world, _arrive=arrive)


def test_a_gate_stops_once_and_at_the_end_where_no_op_came_after() -> None:
    """Before the first op after the chosen one; else when the run is over, while the process still lives."""
    stops: list[int] = []
    early, late, never = (RaceGate(after, lambda: stops.append(1)) for after in (1, 5, NEVER))
    for n in (1, 2, 3):
        early.before(n)
        late.before(n)
        never.before(n)
    assert len(stops) == 1
    early.end()
    never.end()
    assert len(stops) == 1
    late.end()
    assert len(stops) == 2


def test_no_write_is_cut() -> None:
    """Both owners live: nothing is torn by the gate."""
    gate = RaceGate(0, lambda: None)
    assert gate.cut_bytes(1, 100) is None
    with pytest.raises(AssertionError):
        gate.die()


def test_what_one_has_done_the_other_can_look_up(tmp_path: Path) -> None:
    """A key that the other owner has used is known, its receipt comes back, and nothing is done twice."""
    order: list[str] = []
    first, second = shared(tmp_path, FIRST, order), shared(tmp_path, SECOND, order)
    receipt = first.effect("mail", key="a", to="ada")
    assert second.lookup("mail", key="a") == receipt
    assert second.effect("mail", key="a", to="ada") == receipt
    assert [each.counted for each in first.records("mail")] == [True, False]
    assert first.effect("mail", to="bob") != second.effect("mail", to="bob")
    assert order == [FIRST, SECOND, FIRST, SECOND]


def test_the_record_keeps_the_order_of_both(tmp_path: Path) -> None:
    """Effects, calls and acks stand one after the other, each with its owner; file operations do not."""
    first, second = (OutsideRecord(str(tmp_path / "record"), who) for who in (FIRST, SECOND))
    first.mark("opening")
    second.op(t.Call(n=1, name="save", value=7))
    first.op(t.Create(n=1, path="dir/a", inode=5))
    with second.held():
        second.op(t.Ack(n=2, value=7))
    lines = first.lines()
    assert [(line["who"], line.get("mark") or line["op"]["op"]) for line in lines] == [
        (FIRST, "opening"),
        (SECOND, "call"),
        (SECOND, "ack"),
    ]
    assert first.last_call() == "7"
