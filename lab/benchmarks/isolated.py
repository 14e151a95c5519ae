"""Recovery against its floor: a bare fork and exit, in the same server, in the same run.

An isolated recovery makes the crash state, forks, calls ``load`` on one small JSON file, brings the value
back, and proves that nothing is left. A warm one does the same in a process that has recovered before. The
floor forks a child that ends at once. All are measured in short turns, one after the other, and a ratio is
the median over the turns: what else the machine does meets them alike. A ratio is of use between machines; a
time is not.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from crashlab import Store
from crashlab import trace as t
from crashlab.recover import travel
from crashlab.recover.host import Host

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TURNS = 15
RECOVERIES_PER_TURN = 60
STREAMED = 2_000


def save(directory: Path, value: Any) -> None:
    """The simplest store there is."""
    (directory / "value.json").write_text(json.dumps(value))


def load(directory: Path) -> Any:
    """Read one small JSON file."""
    return json.loads((directory / "value.json").read_text())


@dataclass(frozen=True)
class Measured:
    """Per second, medians over the turns, and the median of the ratios of one turn each."""

    recoveries: float
    warm: float
    bare_forks: float
    ratio: float
    warm_ratio: float
    memory_growth_kib: int


def measure(turns: int = TURNS, per_turn: int = RECOVERIES_PER_TURN, streamed: int = STREAMED) -> Measured:
    """Measure with one worker: what several do at once depends on the cores that are free."""
    store = Store(save, load, values=[{"n": 1}])
    with Host(travel.pack(store), jobs=1) as host:
        recording = host.record(timeout_s=60)
        trace = t.Trace(root=recording.root, base=recording.base, ops=recording.ops)
        host.prepare(trace, modules=recording.modules)
        with host.bare_forker() as bare:
            _recoveries(host, trace, per_turn)
            rates = [
                (_recoveries(host, trace, per_turn), _recoveries(host, trace, 5 * per_turn, warm=True), bare(per_turn))
                for _ in range(turns)
            ]
        growth = _memory_growth(host, trace, streamed)
    recoveries, warm, forks = (statistics.median(values) for values in zip(*rates, strict=True))
    ratio, warm_ratio = (statistics.median(rate[which] / rate[2] for rate in rates) for which in (0, 1))
    return Measured(recoveries, warm, forks, ratio, warm_ratio, growth)


def _requests(trace: t.Trace, count: int, *, warm: bool) -> Iterator[dict[str, Any]]:
    asked = {"state": f"kill@{len(trace.ops)}", "steps": [{"step": "first"}], "timeout_s": 60.0, "warm": warm}
    return (dict(asked) for _ in range(count))


def _recoveries(host: Host, trace: t.Trace, count: int, *, warm: bool = False) -> float:
    start = time.perf_counter()
    answers = sum(answer.steps[0].how == "returned" for answer in host.recover(_requests(trace, count, warm=warm)))
    return answers / (time.perf_counter() - start)


def _memory_growth(host: Host, trace: t.Trace, count: int) -> int:
    """By how much the peak of this process grows while so many states stream through it."""
    try:
        import resource  # noqa: PLC0415 - not on every system
    except ImportError:
        return 0
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    _recoveries(host, trace, count)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    return grown // 1024 if sys.platform == "darwin" else grown


def main() -> None:  # printed by ``python -m benchmarks`` too
    """Print the measurement."""
    measured = measure()
    lines = (
        f"isolated recoveries    {measured.recoveries:8.0f} /s",
        f"bare fork and exit     {measured.bare_forks:8.0f} /s",
        f"ratio                  {measured.ratio:8.2f}    (goal 0.8, floor 0.6)",
        f"warm recoveries        {measured.warm:8.0f} /s",
        f"ratio                  {measured.warm_ratio:8.2f}",
        f"peak memory of the main process while {STREAMED} states stream: +{measured.memory_growth_kib} KiB",
    )
    print("\n".join(lines))


if __name__ == "__main__":
    main()
