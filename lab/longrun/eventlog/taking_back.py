"""Taking promises back, which no log may do: what the naive ones need that leave records behind, and share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from longrun.eventlog.lease import STRIDE
from longrun.eventlog.segments import LEASE_NAME, MARK_NAME
from longrun.eventlog.slots import NOTED, SLOTS, fresh, read_slots, slot_of

if TYPE_CHECKING:
    from pathlib import Path


def take_back(directory: Path, promised: int) -> None:
    """Say in mark and lease that no more than ``promised`` ever was. The fences stay, and the lease stays held."""
    (directory / MARK_NAME).write_bytes(fresh(promised))
    lease = directory / LEASE_NAME
    if lease.exists():
        fence = max(read_slots(lease.read_bytes(), STRIDE), default=0)
        lease.write_bytes((slot_of(fence) + slot_of(promised, NOTED)) * SLOTS)
