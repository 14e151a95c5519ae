"""A number that is overwritten in place and never torn: two checksummed slots of 32 bytes, written in turn.

A crash may spoil the slot that is being written; the other one still holds the number before. The larger of the
sound ones counts, since the number only grows. The promise of a log (``mark``) and the token of its writer (``lease``)
are kept so. Both lie in the first 128 bytes of a file, so in one sector.

Beside a number another one may be *noted*, in the same write: its sum is made otherwise, so that none is taken for
the other, wherever it lies.
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
HELD, NOTED = b"slot", b"note"
"""What a slot is: the number that counts, or one that is noted beside it."""


def slot_of(number: int, what: bytes = HELD) -> bytes:
    """One slot: the number, which may be -1, and its sum.

    >>> slot_of(7)
    b'00000000000000076ebcee4289a11bb0'
    """
    digits = f"{number:0{_DIGITS}d}".encode()
    return digits + sum_of(b"%b %b" % (what, digits)).encode()


def number_of(slot: bytes, what: bytes = HELD) -> int | None:
    """The number of a sound slot, None for any other bytes."""
    digits = slot[:_DIGITS]
    if len(slot) != SLOT_BYTES or slot[_DIGITS:] != sum_of(b"%b %b" % (what, digits)).encode():
        return None
    return int(digits)


def read_slots(data: bytes, stride: int = SLOT_BYTES, what: bytes = HELD) -> list[int]:
    """The numbers of the sound slots; empty where all are bad. Each of the pair has ``stride`` bytes, so one or two."""
    slots = (data[at : at + SLOT_BYTES] for at in range(0, SLOTS * stride, SLOT_BYTES))
    return [number for slot in slots if (number := number_of(slot, what)) is not None]


def fresh(number: int = NOTHING) -> bytes:
    """The bytes of a new pair."""
    return slot_of(number) * SLOTS


@dataclass(eq=False)
class Slots:
    """An open pair. ``raise_to`` never touches the slot that holds the number that counts.

    Where ``stride`` is two slots, what is noted beside a number is written with it.
    """

    descriptor: int
    number: int
    _at: int
    stride: int = SLOT_BYTES

    @staticmethod
    def of(descriptor: int, stride: int = SLOT_BYTES) -> Slots:
        """The pair in an open file; :data:`NOTHING` where no slot is sound."""
        data = os.pread(descriptor, stride * SLOTS, 0)
        halves = (data[at * stride : (at + 1) * stride] for at in range(SLOTS))
        found = [max(read_slots(half, stride), default=NOTHING - 1) for half in halves]
        best = max(range(SLOTS), key=found.__getitem__)
        return Slots(descriptor, max(found[best], NOTHING), best, stride)

    def raise_to(self, number: int, sync: Callable[[int], None] | None = None, *, noted: int | None = None) -> None:
        """Write a higher number into the other slot; durable when this returns, where ``sync`` makes it so."""
        other = (self._at + 1) % SLOTS
        data = slot_of(number) + (b"" if noted is None else slot_of(noted, NOTED))
        if os.pwrite(self.descriptor, data, other * self.stride) != len(data):
            text = "a slot was written in part"
            raise OSError(text)
        if sync is not None:
            sync(self.descriptor)
        self.number, self._at = number, other
