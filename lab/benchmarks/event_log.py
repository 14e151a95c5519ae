"""The event log as it grows: what a barrier and an opening cost from 1,000 records to 1,000,000, and with a snapshot.

Only ratios within one run say anything: of a barrier on a long log to one on an empty log (an append must not depend on
what came before), of an opening to one of a tenth of the records (it may grow with them, no faster), of an opening
with a snapshot to a full one. The log is written by the hand of this module, record by record in one grammar, without a
sync each, so that a million is there soon; what is measured is read and written by the real code. A barrier is timed
by the clock, since it waits for the disk; an opening by the processor, so that other load does not count.

``python -m benchmarks.event_log`` measures this alone; a number as argument is the longest log, 1,000,000 without it.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

from longrun.eventlog.events import Note
from longrun.eventlog.opening import Opening, open_log
from longrun.eventlog.scan import Reader
from longrun.eventlog.segments import segment_path, session_directory
from longrun.eventlog.snapshot import write_snapshot
from longrun.eventlog.subjects import SESSION
from longrun.eventlog.sweep import sweep

if TYPE_CHECKING:
    from longrun.eventlog.log import EventLog

LENGTHS = (1_000, 10_000, 100_000, 1_000_000)
BARRIERS, WRITERS, EACH = 200, 8, 150
LATER = 1_000
TEXT = "x" * 340
"""Such a note makes a record of about 500 bytes."""


def grow(log: EventLog, records: int) -> None:
    """Append until the log has so many records, with rotation, and a sync for each batch only."""
    while len(log.records) < records:
        for _ in range(min(10_000, records - len(log.records))):
            log.append(Note(note={"text": TEXT}))
        log.rotate()


def barrier_s(log: EventLog) -> float:
    """Median seconds of one record and its barrier."""
    found = []
    for _ in range(BARRIERS):
        began = time.perf_counter()
        log.append(Note(note={"text": TEXT}))
        log.barrier()
        found.append(time.perf_counter() - began)
    return statistics.median(found)


def opening_s(root: Path) -> float:
    """Seconds of the processor for one opening: read, verified, and a writer's record promised."""
    began = time.process_time()
    open_log(root, SESSION, Opening()).close()
    return time.process_time() - began


def without_snapshot(root: Path) -> None:
    """Take the snapshots away."""
    for path in session_directory(root, SESSION).glob("snap-*.json"):
        os.unlink(path)


def growth(root: Path, longest: int) -> None:
    """One line per length."""
    log = open_log(root, SESSION, Opening())
    empty_s = barrier_s(log)
    heads = ("records", "barrier µs", "/ empty", "open s", "/ n", "snapshot s", "/ open")
    print("".join(f"{head:>12}" for head in heads))
    before: tuple[int, float] | None = None
    for length in (each for each in LENGTHS if each <= longest):
        grow(log, length)
        took = barrier_s(log)
        log.close()
        without_snapshot(root)
        full = opening_s(root)
        with open_log(root, SESSION, Opening()) as log:
            write_snapshot(log)
            grow(log, len(log.records) + LATER)
        part = opening_s(root)
        per = 1.0 if before is None else (full / length) / (before[1] / before[0])
        before = (length, full)
        row = (f"{length:,}", f"{took * 1e6:.0f}", f"{took / empty_s:.2f}", f"{full:.3f}", f"{per:.2f}")
        print("".join(f"{cell:>12}" for cell in (*row, f"{part:.3f}", f"{part / full:.2f}")))
        log = open_log(root, SESSION, Opening())
    log.close()


def syncs_per_record(root: Path) -> float:
    """Eight threads append, each waiting for its own record."""
    with open_log(root, "writers", Opening()) as log:
        before = log.syncs

        def write() -> None:
            for n in range(EACH):
                log.append(Note(note={"n": n, "text": TEXT})).wait()

        threads = [threading.Thread(target=write) for _ in range(WRITERS)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        return (log.syncs - before) / (WRITERS * EACH)


def damages(root: Path) -> tuple[int, int, float]:
    """States of the exhaustive sweep, those that came out wrong, and seconds of the processor."""
    with open_log(root, "swept", Opening(writer="w")) as log:
        for n in range(8):
            log.append(Note(note={"n": n}))
            log.barrier()
    directory = session_directory(root, "swept")
    began = time.process_time()
    found = sweep(root / "copy", segment_path(directory, 0).read_bytes(), (directory / "mark").read_bytes(), Reader())
    return found.total(), found.total() - found["same"] - found["refused"], time.process_time() - began


def main() -> None:
    """Measure, and print."""
    longest = int(sys.argv[1]) if len(sys.argv) > 1 and sys.argv[1].isdigit() else LENGTHS[-1]
    print("event log (goals: barrier / empty 1.25 at 100,000; with snapshot / open 0.10; 0.35 syncs a record)")
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        growth(root, longest)
        print(f"{WRITERS} writers: {syncs_per_record(root):.2f} syncs a record")
        states, wrong, took = damages(root)
        print(f"every single damage: {states:,} states, {wrong} wrong, {took:.1f} s")


if __name__ == "__main__":
    main()
