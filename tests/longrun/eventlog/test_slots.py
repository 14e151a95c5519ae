"""Tests of longrun.eventlog.slots: a number that no crash tears."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from longrun.eventlog.slots import HELD, NOTED, NOTHING, SLOT_BYTES, Slots, fresh, number_of, read_slots, slot_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def slots(tmp_path: Path) -> Iterator[Slots]:
    """A fresh pair."""
    (tmp_path / "mark").write_bytes(fresh())
    descriptor = os.open(tmp_path / "mark", os.O_RDWR)
    yield Slots.of(descriptor)
    os.close(descriptor)


@pytest.mark.parametrize("number", [NOTHING, 0, 7, 10**14])
def test_a_slot_has_its_size_and_gives_its_number_back(number: int) -> None:
    """For any number that a log will ever have."""
    assert len(slot_of(number)) == SLOT_BYTES
    assert number_of(slot_of(number)) == number


def test_no_flipped_bit_passes() -> None:
    """Each makes the slot a bad one."""
    slot = slot_of(41)
    for bit in range(SLOT_BYTES * 8):
        flipped = bytearray(slot)
        flipped[bit // 8] ^= 1 << bit % 8
        assert number_of(bytes(flipped)) is None


def test_while_one_slot_is_written_the_other_one_counts(slots: Slots) -> None:
    """Whatever a crash makes of the slot under the pen, the number before is there."""
    for number in range(5):
        before = os.pread(slots.descriptor, 64, 0)
        slots.raise_to(number)
        after = os.pread(slots.descriptor, 64, 0)
        changed = [at for at in (0, 1) if before[at * 32 : at * 32 + 32] != after[at * 32 : at * 32 + 32]]
        assert len(changed) == 1
        spoiled = bytearray(after)
        spoiled[changed[0] * 32 : changed[0] * 32 + 32] = b"\0" * 32
        assert read_slots(bytes(spoiled)) == [number - 1]


def test_a_failed_raise_is_tried_in_the_same_slot(slots: Slots) -> None:
    """Else the second attempt would spoil the one number that is sound."""
    slots.raise_to(3)

    def fails(_descriptor: int) -> None:
        raise OSError

    for _ in range(2):
        with pytest.raises(OSError):  # noqa: PT011 - it is the one that was planted
            slots.raise_to(9, fails)
    assert sorted(read_slots(os.pread(slots.descriptor, 64, 0))) == [3, 9]
    assert slots.number == 3


def test_both_bad_is_nothing() -> None:
    """And is told apart from "nothing was promised"."""
    assert read_slots(b"\0" * 64) == []
    assert read_slots(fresh()) == [NOTHING, NOTHING]
    assert read_slots(b"") == []


def test_what_is_noted_beside_a_number_is_written_with_it_and_never_taken_for_one(slots: Slots) -> None:
    """In one write, half by half; as large as it may be, it does not count."""
    paired = Slots.of(slots.descriptor, 2 * SLOT_BYTES)
    for number in range(4):
        paired.raise_to(number, noted=100 + number)
    data = os.pread(slots.descriptor, 999, 0)
    assert len(data) == 4 * SLOT_BYTES
    assert sorted(read_slots(data, 2 * SLOT_BYTES, HELD)) == [2, 3]
    assert sorted(read_slots(data, 2 * SLOT_BYTES, NOTED)) == [102, 103]
    assert Slots.of(slots.descriptor, 2 * SLOT_BYTES).number == 3
    assert number_of(slot_of(7, NOTED)) is None
