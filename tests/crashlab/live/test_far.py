"""The gate that another process holds: what it knows is asked, and it can be switched off and on."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

import pytest

from crashlab.live.errors import ErrorGate
from crashlab.live.far import FarGate, GateKeeper

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def keeper() -> Iterator[GateKeeper]:
    made = GateKeeper(ErrorGate(at=1, variant="EIO", kind="write", mode="until"))
    yield made
    made.close()


def answered(keeper: GateKeeper, counts: list[int]) -> threading.Thread:
    """The watching process, which answers one question per count."""

    def answer() -> None:
        for count in counts:
            keeper.serve(count)

    thread = threading.Thread(target=answer)
    thread.start()
    return thread


def test_what_the_gate_knows_is_asked(keeper: GateKeeper) -> None:
    """Strikes, whether it is active, and the ops so far, each as they are when asked."""
    far = FarGate(os.dup(keeper.theirs.fileno()), "until")
    watching = answered(keeper, [3, 4, 5, 6, 7])
    assert far.struck == 0
    assert keeper.gate.strike(1, "write", 10) is not None
    assert far.struck == 1
    assert far.count() == 5
    far.active = False
    assert far.active is False
    watching.join()
    far.close()
    assert keeper.gate.strike(1, "write", 10) is None


def test_it_can_be_switched_on_again(keeper: GateKeeper) -> None:
    """An error that lasts for ever is switched on by what was switched off."""
    far = FarGate(os.dup(keeper.theirs.fileno()), "for-ever")
    watching = answered(keeper, [1, 1])
    far.active = False
    far.active = True
    watching.join()
    far.close()
    assert keeper.gate.active
    assert far.mode == "for-ever"
