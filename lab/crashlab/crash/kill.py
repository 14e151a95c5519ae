"""What SIGKILL may leave: every prefix of the ops, and every write cut at a page boundary.

The page cache survives a kill, so every completed op is there, synced or not: a kill never shows a
missing fsync. Of the op in flight nothing is there, or all, or, for a write, the bytes up to a
multiple of 4096 of the *file offset*.

Measured: about 27,000 kills inside calls on tmpfs, ext4, xfs and btrfs (Linux 6.18) left prefixes
only, cut at such multiples: a 4 KiB write at offset 0 was never cut, one at offset 100 was cut at
the page boundary inside it; renames, truncations and allocations were whole or absent. Cuts off
page boundaries were seen only where the source memory was a mapped file that was not resident; the
option ``cut="byte"`` covers those.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from crashlab import trace as t
from crashlab.content import BLOCK_BYTES
from crashlab.crash.states import CrashState, prefixes_of

if TYPE_CHECKING:
    from collections.abc import Iterator

Cut = Literal["page", "byte"]


def cut_points(op: t.Op, *, at: Cut = "page") -> range:
    """After how many of its bytes a kill may cut ``op``: empty for all but writes.

    >>> list(cut_points(t.Write(n=1, path="dir/a", inode=1, offset=11, data=bytes(10_000))))
    [4085, 8181]
    >>> list(cut_points(t.Write(n=1, path="dir/a", inode=1, offset=0, data=bytes(4096))))
    []
    """
    if not isinstance(op, t.Write):
        return range(0)
    if at == "byte":
        return range(1, len(op.data))
    first = BLOCK_BYTES - op.offset % BLOCK_BYTES
    return range(first, len(op.data), BLOCK_BYTES)


def kill_states(trace: t.Trace, *, at: Cut = "page") -> Iterator[CrashState]:
    """Every state that a kill may leave, in trace order, equal ones included.

    There are ``ops + 1 + number of cut points`` of them.
    """
    prefixes = prefixes_of(trace)
    yield prefixes.killed(0)
    for op in trace.ops:
        for cut_bytes in cut_points(op, at=at):
            yield prefixes.killed(op.n - 1, cut_bytes)
        yield prefixes.killed(op.n)
