"""Two owners of one outside world: a gate that stops once, and a record that both write and read."""

from __future__ import annotations

import contextlib
import json
import os
from typing import TYPE_CHECKING, Any

import pytest

from crashlab import trace as t
from crashlab.live.race import FIRST, NEVER, SECOND, OutsideRecord, Owner, RaceGate, SharedLab

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


class Learning:
    """The recorder of an owner, as far as its gate asks it."""

    event = arriving = None

    def __init__(self) -> None:
        self.known: dict[tuple[int, int], int] = {}

    def numbers(self) -> list[Any]:
        """None of its own."""
        return []

    def learn(self, numbers: dict[tuple[int, int], int]) -> None:
        """What the other owner has made."""
        self.known |= numbers


def test_one_that_was_frozen_before_its_gate_stops_there_all_the_same(tmp_path: Path) -> None:
    """What it was told as it went on is no word to pass the gate, and may still wait to be read when that comes."""
    recorder: Any = Learning()
    os.mkfifo(go := str(tmp_path / "go"))
    gate = os.open(go, os.O_RDWR)

    def send(number: int, *, word: bool) -> None:
        os.write(gate, json.dumps({"go": word, "numbers": [[1, number, number]]}).encode() + b"\n")

    form = {"who": SECOND, "after": 0, "go": go, "record": str(tmp_path / "record"), "nothing": None}
    owner = Owner(form, tmp_path, recorder, lambda told: send(7, word=True) if told["stopped"] else None)
    send(5, word=False)
    owner.gate.before(1)
    assert recorder.known == {(1, 5): 5, (1, 7): 7}
    send(6, word=False)
    assert (owner.gate.news(), owner.gate.news()) == ({(1, 6): 6}, {})
    os.close(gate)


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
