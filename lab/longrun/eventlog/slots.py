"""A number that is overwritten in place and never torn: two checksummed slots of 32 bytes, written in turn.

A crash may spoil the slot that is being written; the other one still holds the number before. The larger of the
sound ones counts, since the number only grows. The promise of a log (``mark``) and the token of its writer (``lease``)
are kept so. Both slots lie in the first 64 bytes of a file, so in one sector.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from longrun.eventlog.record import sum_of

if TYPE_CHECKING:
    from collections.abc import Callable

SLOT_BYTES = 32
SLOTS = 2
_DIGITS = 16
NOTHING = -1
"""What a pair of slots says before anything was written into them."""


def slot_of(number: int) -> bytes:
    """One slot: the number, which may be -1, and its sum.

    >>> slot_of(7)
    b'00000000000000076ebcee4289a11bb0'
    """
    digits = f"{number:0{_DIGITS}d}".encode()
    return digits + sum_of(b"slot " + digits).encode()


def number_of(slot: bytes) -> int | None:
    """The number of a sound slot, None for any other bytes."""
    digits = slot[:_DIGITS]
    if len(slot) != SLOT_BYTES or slot[_DIGITS:] != sum_of(b"slot " + digits).encode():
        return None
    return int(digits)


def read_slots(data: bytes, stride: int = SLOT_BYTES) -> list[int]:
    """The numbers of the sound slots; empty where both are bad. A slot begins every ``stride`` bytes."""
    slots = (data[at * stride : at * stride + SLOT_BYTES] for at in range(SLOTS))
    return [number for slot in slots if (number := number_of(slot)) is not None]


def fresh(number: int = NOTHING) -> bytes:
    """The bytes of a new pair."""
    return slot_of(number) * SLOTS


@dataclass(eq=False)
class Slots:
    """An open pair. ``raise_to`` never touches the slot that holds the number that counts.

    Where ``stride`` is larger than a slot, what is to stand beside a number is written with it.
    """

    descriptor: int
    number: int
    _at: int
    stride: int = SLOT_BYTES

    @staticmethod
    def of(descriptor: int, stride: int = SLOT_BYTES) -> Slots:
        """The pair in an open file; :data:`NOTHING` where no slot is sound."""
        data = os.pread(descriptor, stride * SLOTS, 0)
        found = [number_of(data[at * stride : at * stride + SLOT_BYTES]) for at in range(SLOTS)]
        best = max(range(SLOTS), key=lambda at: NOTHING - 1 if (number := found[at]) is None else number)
        held = found[best]
        return Slots(descriptor, NOTHING if held is None else held, best, stride)

    def raise_to(self, number: int, sync: Callable[[int], None] | None = None, beside: bytes = b"") -> None:
        """Write a higher number into the other slot; durable when this returns, where ``sync`` makes it so."""
        other = (self._at + 1) % SLOTS
        data = slot_of(number) + beside
        if os.pwrite(self.descriptor, data, other * self.stride) != len(data):
            text = "a slot was written in part"
            raise OSError(text)
        if sync is not None:
            sync(self.descriptor)
        self.number, self._at = number, other
