"""How many states of a power loss one core enumerates per second, and what a state costs in memory.

The subjects are loops that save five blocks per turn: without any barrier, with fsync of the file, and
with fsync of file and directory. ``python -m benchmarks.power`` prints one line per loop and profile. A
state is enumerated when its recipe and digest are there and it is known to be new; no bytes are built.
A trace is read once for all profiles, which has a line of its own. Each loop is gone through a few times, and
the fastest counts.
"""

from __future__ import annotations

import time
import tracemalloc

from crashlab import trace as t
from crashlab.crash.micro import History
from crashlab.crash.power import PowerLoss
from crashlab.crash.profiles import PROFILES, parse_profile
from crashlab.recover.place import base_tree

FILE_BYTES = 20_000
BOUND = 4096
STATES = 300_000
"""Enough of a loop with more states to know its rate."""

ROUNDS = 5
"""How often a loop with few states is gone through."""


def turns(number: int, *, fsync: bool, directory: bool) -> t.Trace:
    """``number`` saves by temporary file and rename, with the barriers that are asked for, each acked."""
    base = base_tree()
    ops: list[t.Op] = []
    inode = base.lookup("dir")
    assert inode is not None

    def add(op_type: type[t.Op], **fields: object) -> None:
        ops.append(op_type(n=len(ops) + 1, **fields))  # type: ignore[arg-type]  # each caller names the fields of its op

    for turn in range(number):
        on = {"path": "dir/tmp", "inode": 100 + turn}
        add(t.Create, **on)
        content = b"".join(f"{turn:6}{line:6}{'.' * 28}".encode() for line in range(FILE_BYTES // 40))
        add(t.Write, **on, offset=0, data=content)
        if fsync:
            add(t.Fsync, **on)
        add(t.Rename, **on, to="dir/state")
        if directory:
            add(t.Fsync, path="dir", inode=inode)
        add(t.Ack, value=turn)
    return t.Trace(root="/root-of-the-trace", base=base, ops=tuple(ops))


def rate(trace: t.Trace, profile: str) -> tuple[int, float]:
    """How many different states, and in how many seconds of one core."""
    began = time.process_time()
    loss = PowerLoss(trace, parse_profile(profile), bound=BOUND)
    number = 0
    for number, _ in enumerate(loss.states(), start=1):
        if number == STATES:
            break
    return number, time.process_time() - began


def best_rate(trace: t.Trace, profile: str) -> tuple[int, float]:
    """The fastest of a few rounds; one for a loop with many states."""
    found = [rate(trace, profile)]
    while found[0][0] < STATES and len(found) < ROUNDS:
        found.append(rate(trace, profile))
    return min(found, key=lambda each: each[1])


def bytes_per_state(trace: t.Trace, profile: str) -> tuple[int, float]:
    """How many states, and what each adds to the memory at its peak."""
    tracemalloc.start()
    number, _ = rate(trace, profile)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return number, peak / number


BARRIERS = {
    "no barrier": {"fsync": False, "directory": False},
    "fsync": {"fsync": True, "directory": False},
    "fsync and dirsync": {"fsync": True, "directory": True},
}


def main() -> None:
    """Measure, and print one line per loop and profile."""
    print(f"{'power loss':30} {'profile':8} {'states':>10} {'per second':>12}")
    for number in (4, 20, 100):
        for name, barriers in BARRIERS.items():
            trace = turns(number, **barriers)
            began = time.process_time()
            History.of(trace)
            spent = time.process_time() - began
            print(f"{f'{number} turns, {name}':30} {'read':8} {len(trace.ops):6} ops {len(trace.ops) / spent:12,.0f}")
            for profile in PROFILES:
                states, seconds = best_rate(trace, profile)
                print(f"{f'{number} turns, {name}':30} {profile:8} {states:10,} {states / seconds:12,.0f}")
    states, each = bytes_per_state(turns(20, **BARRIERS["no barrier"]), "posix")
    print(f"memory at the peak: {each:.0f} bytes per state ({states:,} states)")


if __name__ == "__main__":
    main()
