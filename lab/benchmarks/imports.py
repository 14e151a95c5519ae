"""What importing costs: the package, its plugin, its command line, its first check, beside an interpreter alone.

``python -m benchmarks.imports`` starts each as a process of its own, in turn, so that a machine that grows slow grows
slow for all of them, and prints medians: the time, what it is over that of the bare interpreter, and the ratio. Whoever
runs a thousand tests pays the first two in each worker; the aims are 60 ms and 30 ms over the bare interpreter.

Bytecode is compiled before anything is measured, as it is after an installation.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

ROUNDS = 21
BARE = "nothing"
PROGRAMS = {
    BARE: "pass",
    "import crashlab": "import crashlab",
    "from crashlab import Store": "from crashlab import Store",
    "pytest alone": "import pytest",
    "the pytest plugin, over pytest": "import pytest, crashlab.pytest_plugin",
    "the command line": "import crashlab.cli",
    "from crashlab import check": "from crashlab import check",
}
OVER = {"the pytest plugin, over pytest": "pytest alone"}
"""What a program is compared with where that is not the bare interpreter."""


def rounds() -> list[dict[str, float]]:
    """Seconds that each program takes from start to end, for each of :data:`ROUNDS` rounds."""
    found: list[dict[str, float]] = []
    for _ in range(ROUNDS + 1):
        taken = {}
        for name, program in PROGRAMS.items():
            began = time.perf_counter()
            subprocess.run([sys.executable, "-c", program], check=True)
            taken[name] = time.perf_counter() - began
        found.append(taken)
    return found[1:]  # the first compiles


def main() -> None:
    """Measure, and print one line per program: what it costs is compared within each round."""
    print(f"{'importing':32} {'ms':>8} {'ms over':>9} {'ratio':>7}")
    found = rounds()
    for name in PROGRAMS:
        beside = OVER.get(name, BARE)
        alone = statistics.median(taken[name] for taken in found)
        over = statistics.median(taken[name] - taken[beside] for taken in found)
        ratio = statistics.median(taken[name] / taken[beside] for taken in found)
        print(f"{name:32} {alone * 1000:8.1f} {over * 1000:9.1f} {ratio:7.2f}")


if __name__ == "__main__":
    main()
