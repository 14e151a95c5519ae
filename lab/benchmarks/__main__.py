"""``make bench``: how many crash states per second each stage handles, beside a fresh interpreter.

A fresh interpreter per crash state is what a shell script would use, so it is the yardstick: every
other rate is also shown as a multiple of it, measured in the same run. The subject is a small
correct store; an agent that loads more takes longer in every row.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from typing import TYPE_CHECKING, Any

from benchmarks import commands, event_log, first_violation, grading, imports, isolated, power, reference_save
from crashlab import Store, explore
from crashlab import trace as t
from crashlab.crash.kill import kill_states
from crashlab.errors import CrashlabError
from crashlab.recover.place import base_tree

if TYPE_CHECKING:
    from pathlib import Path

INTERPRETERS = 20
SAVES = 40
WRITES, WRITE_BYTES = 400, 20_000


def save(directory: Path, value: Any) -> None:
    """Save whole: temporary file, fsync, rename, fsync of the directory."""
    temporary = directory / "value.tmp"
    with temporary.open("w") as file:
        json.dump(value, file)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(directory / "value.json")
    descriptor = os.open(directory, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)


def load(directory: Path) -> Any:
    """The last saved value."""
    return json.loads((directory / "value.json").read_text())


SUBJECT = Store(save, load, name="store", values=[{"n": n, "text": "x" * (n * 400)} for n in range(SAVES)])


def fresh_interpreters() -> tuple[int, float]:
    """Start and end an interpreter, as often as :data:`INTERPRETERS`."""
    began = time.perf_counter()
    for _ in range(INTERPRETERS):
        subprocess.run([sys.executable, "-c", "import crashlab, json"], check=True)
    return INTERPRETERS, time.perf_counter() - began


def computed_states() -> tuple[int, float]:
    """Compute and hash every kill state of a long log, cuts included."""
    create = t.Create(n=1, path="dir/log", inode=100)
    writes = [
        t.Write(n=n + 2, path="dir/log", inode=100, offset=n * WRITE_BYTES, data=bytes([n % 251]) * WRITE_BYTES)
        for n in range(WRITES)
    ]
    trace = t.Trace(root="/root-of-the-trace", base=base_tree(), ops=(create, *writes))
    began = time.perf_counter()
    digests = {state.digest for state in kill_states(trace)}
    return len(digests), time.perf_counter() - began


def judged_states() -> tuple[int, float]:
    """Recover each crash state of the store twice, with one more save, and judge it."""
    with tempfile.TemporaryDirectory() as out:
        report = explore("benchmarks.__main__:SUBJECT", faults="kill", out=out)
    if report.verdict != "consistent":
        text = f"the benchmark's store must be consistent, and was not:\n{report}"
        raise CrashlabError(text)
    return sum(each.judged for each in report.faults), sum(each.seconds for each in report.faults)


def main() -> None:
    """Measure, and print one line per stage."""
    stages = {
        "one fresh interpreter each": fresh_interpreters,
        "computed and hashed": computed_states,
        "recovered and judged": judged_states,
    }
    yardstick = 0.0
    print(f"{'crash states':28} {'number':>8} {'per second':>12} {'times the first':>16}")
    for name, measure in stages.items():
        number, seconds = measure()
        rate = number / seconds
        yardstick = yardstick or rate
        print(f"{name:28} {number:8,} {rate:12,.0f} {rate / yardstick:16,.1f}")
    for part in (imports, isolated, commands, power, first_violation, reference_save, event_log, grading):
        print()
        part.main()


if __name__ == "__main__":
    main()
