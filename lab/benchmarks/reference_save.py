"""The save of the reference agent beside the same bytes written by hand, and what it costs as a run grows.

The save under measure is all of it: from the checkpoint as the agent holds it, by encoding and checksum, to the
synced directory. The yardstick is the least that is durable: open, write, fsync, rename, fsync of the directory,
with the bytes ready. Both write the same bytes in turns, each first as often as the other, and the median of the
ratio per pair counts, so that a disk that grows slow grows slow for both.

A checkpoint holds all messages, so the bytes of a save grow with the turns, for whoever writes them. What must
not grow is the rest: the ratio of the two times, and the peak of memory as a multiple of the bytes of the file.
The format wants a checksum over all bytes, and it cannot be carried on from save to save: the counters, which
change each time, stand before the messages. Measured (x86-64 with SHA instructions): 0.93 ms of processor time for
the 1.6 MB of 1,000 turns, where the write by hand takes 0.7 to 1.4 ms of it and waits for the disk besides. So the goal
is out of reach there unless the disk takes 10 ms, as it is wherever writing costs less than ten checksums (a file
system in memory). Therefore the last ratio is to the write by hand and a checksum, one after the other.

``python -m benchmarks.reference_save`` measures this alone. The first saves of a process are left out of the
medians; what a resumed process pays for its first one stands in a column of its own.
"""

from __future__ import annotations

import hashlib
import os
import statistics
import tempfile
import time
import tracemalloc
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from longrun.checkpoint import correct
from longrun.messages import tool_result, user
from longrun.protocol import CHECKPOINT_NAME, Checkpoint, encode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from longrun.messages import Message

PAIRS, FIRST_LEFT_OUT = 60, 4
TURNS = (10, 100, 1_000)
RESULT_BYTES = 1_100
"""Of one tool's answer: as long as a ticket of the default inbox."""
MEMORY_DIRECTORIES = (Path("/dev/shm"), Path("/run/shm"))  # noqa: S108 - a file system in memory is what is wanted
GOAL_RATIO = 1.1


@dataclass(frozen=True)
class Pair:
    """Seconds of one save, of one write by hand and of the checksum alone, and the bytes that both wrote."""

    save_s: float
    raw_s: float
    checksum_s: float
    size: int

    @property
    def ratio(self) -> float:
        """How many times the write by hand the save took."""
        return self.save_s / self.raw_s

    @property
    def over(self) -> float:
        """How many times the write by hand with a checksum the save took: what the code adds to the format."""
        return self.save_s / (self.raw_s + self.checksum_s)


@dataclass(frozen=True)
class Figures:
    """The medians of all pairs. ``first_s`` is the first save of a process, which has no text to go on from."""

    turns: int
    size: float
    save_s: float
    raw_s: float
    ratio: float
    over: float
    first_s: float

    @staticmethod
    def of(turns: int, pairs: Sequence[Pair], *, first_s: float) -> Figures:
        """From the pairs that count: each median for itself, and the ratios are those within a pair.

        >>> Figures.of(1, [Pair(1, 1, 0, 9), Pair(4, 2, 2, 9), Pair(9, 3, 0, 9)], first_s=5).ratio
        2.0
        """
        return Figures(
            turns,
            size=statistics.median(pair.size for pair in pairs),
            save_s=statistics.median(pair.save_s for pair in pairs),
            raw_s=statistics.median(pair.raw_s for pair in pairs),
            ratio=statistics.median(pair.ratio for pair in pairs),
            over=statistics.median(pair.over for pair in pairs),
            first_s=first_s,
        )


def turn(number: int) -> tuple[Message, Message]:
    """What one turn adds to the transcript: a call and its result, as objects of their own."""
    name = f"toolu_{number:024}"
    call = {"type": "tool_use", "id": name, "name": "read_ticket", "input": {}}
    text = f"{number:08} " + "a line of a log, \u00e9\n" * (RESULT_BYTES // 19)
    return {"role": "assistant", "content": [call]}, {"role": "user", "content": [tool_result(name, text)]}


def run_of(turns: int, saves: int) -> Iterator[Checkpoint]:
    """Checkpoints of a run of ``turns`` turns, ``saves`` times with another last turn: all before it is as it was."""
    messages: list[Message] = [user("triage"), *(message for number in range(1, turns) for message in turn(number))]
    for number in range(turns, turns + saves):
        whole = (*messages, *turn(number))
        yield Checkpoint(run_id="run", task="triage", messages=whole, turns=turns, seq=10_000 + number)


def write_by_hand(directory: Path, data: bytes) -> None:
    """The same promise as a save's, with the fewest calls."""
    descriptor = os.open(directory / "raw.tmp", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    os.write(descriptor, data)
    os.fsync(descriptor)
    os.close(descriptor)
    os.rename(directory / "raw.tmp", directory / "raw.json")
    descriptor = os.open(directory, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)


def seconds(act: Callable[[], object]) -> float:
    """How long ``act`` takes."""
    began = time.perf_counter()
    act()
    return time.perf_counter() - began


def measure(directory: Path, turns: int, pairs: int = PAIRS) -> Figures:
    """Both in turns, at a run of ``turns`` turns."""
    run = run_of(turns, 1 + FIRST_LEFT_OUT + pairs)
    first = next(run)
    first_s = seconds(lambda: correct.save(directory, first))
    found = [_pair(directory, state, save_first=bool(number % 2)) for number, state in enumerate(run)]
    return Figures.of(turns, found[FIRST_LEFT_OUT:], first_s=first_s)


def _pair(directory: Path, state: Checkpoint, *, save_first: bool) -> Pair:
    """One pair. Where the hand writes first, it writes the save before again, which is as long."""
    if save_first:
        save_s = seconds(lambda: correct.save(directory, state))
        data = (directory / CHECKPOINT_NAME).read_bytes()
        raw_s = seconds(lambda: write_by_hand(directory, data))
    else:
        data = (directory / CHECKPOINT_NAME).read_bytes()
        raw_s = seconds(lambda: write_by_hand(directory, data))
        save_s = seconds(lambda: correct.save(directory, state))
    return Pair(save_s, raw_s, seconds(lambda: hashlib.sha256(data).digest()), len(data))


def memory(directory: Path, turns: int) -> tuple[float, float]:
    """Peak of the bytes allocated within one save of a run under way, and what it leaves, in multiples of the file."""
    before, state = run_of(turns, 2)
    size = len(encode(before))  # and what is kept from one save to the next is kept
    tracemalloc.start()
    try:
        correct.save(directory, state)
        kept, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return peak / size, kept / size


def places() -> list[tuple[str, Path]]:
    """Where to measure: the folder for temporary files, and a file system in memory where there is one."""
    found = [("disk", Path(tempfile.gettempdir()))]
    return found + [("memory", path) for path in MEMORY_DIRECTORIES if os.access(path, os.W_OK)][:1]


def main() -> None:
    """Measure, and print one line per place and length."""
    heads = ("turns", "KiB", "save ms", "by hand ms", "ratio", "over sum", "first ms", "peak", "kept")
    print(f"{'save of the agent':18}", *(f"{head:>10}" for head in heads), f"  (goal of the ratio {GOAL_RATIO})")
    for name, place in places():
        for turns in TURNS:
            with tempfile.TemporaryDirectory(dir=place) as folder:
                found = measure(Path(folder), turns)
                peak, kept = memory(Path(folder), turns)
            times = f"{found.save_s * 1e3:10.3f} {found.raw_s * 1e3:10.3f} {found.ratio:10.2f} {found.over:10.2f}"
            rest = f"{found.first_s * 1e3:10.3f} {peak:10.2f} {kept:10.2f}"
            print(f"on {name:15} {turns:10,} {found.size / 1024:10.1f} {times} {rest}")


if __name__ == "__main__":
    main()
