"""``python -m benchmarks.reference_agent``: every correct module of the reference agent, both models, every fault.

Hours of work: each row is a check of its own, and is kept in a file of JSON lines when it is done. Ctrl-C ends it,
shows what was reached, and the same command goes on behind the last whole row. Two of them may run side by side, each
with rows of its own: ``--only capstone`` takes those whose names contain that word, ``--list`` names them all.
Progress goes to stderr, the table to stdout.

What must come out: no violation, and nothing unmeasured. Unknown are states in which a person must be asked; that
each of them is honest the lab has held against all other states with the same files, and a needless one is a
violation. ``--write`` puts the table into ``lab/longrun/CHECKED.md``, unless a row is bad; rows that are missing stand
there as not run, and are counted.

Exit codes: 0 all rows are there and consistent; 1 a violation; 2 something unmeasured, or wrong usage;
3 rows are missing; 130 interrupted.
"""

from __future__ import annotations

import argparse
import dataclasses
import platform
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.agent_rows import (
    ALL_RECOVERIES,
    BUDGET,
    HEAD,
    PROFILES,
    ROWS,
    Row,
    cells,
    code_digest,
    keep,
    kept,
    tried,
)
from benchmarks.fault_tables import table
from crashlab.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

PAGE = Path(__file__).parents[1] / "longrun" / "CHECKED.md"
OUT = Path(".crashlab")
KEPT = "reference_agent.jsonl"
BEGIN = "<!-- generated: python -m benchmarks.reference_agent --write -->"
_VIOLATION, _UNMEASURED, _MISSING, _INTERRUPTED = 1, 2, 3, 130
_TOLD_EVERY_S = 10.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run it, and give the exit code."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell that starts us in the background ignores it
    parser = _parser()
    options = parser.parse_args(arguments)
    rows = [row for row in ROWS if all(word in row.name for word in options.only)]
    if not rows:
        parser.error(f"no row has {' and '.join(map(repr, options.only))} in its name; --list shows them")
    if options.write and options.only:
        parser.error("--write needs all rows: leave out --only; add --show to run none of them")
    if options.list:
        print("\n".join(row.name for row in rows))
        return 0
    try:
        return _run(rows, options)
    except (UsageError, ValueError) as error:
        print(error, file=sys.stderr)
        return _UNMEASURED


def _parser() -> argparse.ArgumentParser:
    shape = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.reference_agent", description=__doc__, formatter_class=shape
    )
    parser.add_argument("--only", action="append", default=[], metavar="WORD", help="rows with it in their names")
    parser.add_argument("--list", action="store_true", help="name the rows, and run none")
    parser.add_argument("--show", action="store_true", help="show what is kept, and run none")
    parser.add_argument("--write", action="store_true", help=f"put the table into {PAGE.name}")
    parser.add_argument(
        "--nested", type=int, default=ALL_RECOVERIES, help=f"recoveries crashed (default {ALL_RECOVERIES})"
    )
    parser.add_argument("--sample", type=int, default=BUDGET.sample, help=f"picks beyond (default {BUDGET.sample})")
    parser.add_argument("--seed", type=int, default=0, help="of the samples (default 0)")
    parser.add_argument("--out", type=Path, default=OUT, help=f"folder of the runs (default {OUT})")
    parser.add_argument("--kept", type=Path, help=f"file of the rows (default {KEPT} in that folder)")
    return parser


def _run(rows: Sequence[Row], options: argparse.Namespace) -> int:
    file = options.kept or options.out / KEPT
    file.parent.mkdir(parents=True, exist_ok=True)
    budget = dataclasses.replace(BUDGET, nested=options.nested, sample=options.sample)
    found = kept(file, rows, budget, options.seed)
    interrupted = False
    try:
        for number, row in enumerate(rows, start=1):
            if row in found or options.show:
                continue
            told = _teller(f"{number} of {len(rows)}, {row.name}")
            found[row] = tried(row, budget, options.out, seed=options.seed, progress=told)
            keep(file, found[row])
            print(f"{row.name}: {found[row]['verdict']}", file=sys.stderr)
    except KeyboardInterrupt:
        interrupted = True
        print("interrupted; this was reached, and the same command goes on from it:", file=sys.stderr)
    text = f"{table(HEAD, [cells(row, found.get(row)) for row in rows])}\n\n{terms(rows, found, options)}"
    print(text)
    _complain(found)
    code = exit_code(rows, found)
    if options.write and code in (0, _MISSING):
        write(PAGE, text)
    return _INTERRUPTED if interrupted and code in (0, _MISSING) else code


def _teller(name: str) -> Callable[[str, int, int], None]:
    """Says now and then how far a row is."""
    last = time.monotonic()

    def told(phase: str, done: int, total: int) -> None:
        nonlocal last
        if time.monotonic() - last >= _TOLD_EVERY_S:
            last = time.monotonic()
            print(f"{name}: {phase} {done:,} of {total:,}", file=sys.stderr)

    return told


def exit_code(rows: Sequence[Row], found: dict[Row, dict[str, Any]]) -> int:
    """The gravest of all rows; a missing one is no pass."""
    verdicts = {found[row]["verdict"] if row in found else "missing" for row in rows}
    grave = {"violation": _VIOLATION, "unmeasured": _UNMEASURED, "missing": _MISSING}
    return next((code for verdict, code in grave.items() if verdict in verdicts), 0)


def terms(rows: Sequence[Row], found: dict[Row, dict[str, Any]], options: argparse.Namespace) -> str:
    """Under which terms the table was made, and its sums."""
    counts = [found[row]["count"] for row in rows if row in found and found[row]["count"]]
    judged, bad, unknown = (sum(count[name] for count in counts) for name in ("judged", "violation", "unknown"))
    where = f"Linux {platform.release().partition('-')[0]}, Python {platform.python_version()}"
    return (
        f"{len(counts)} of {len(rows)} rows: {judged:,} states judged, {bad} violations, {unknown:,} unknown. "
        f"{where}, {time.strftime('%Y-%m-%d')}, code {code_digest()}, seed {options.seed}. Power losses by the rules "
        f"of {PROFILES}: all subsets of {BUDGET.subset} writes at each cut, then {options.sample} picks. "
        f"Up to {options.nested:,} recoveries crashed a row. Races: the second owner enters at every op, "
        f"and {options.sample} times the first goes on before the second has ended. "
        f"{BUDGET.real_kills} real kills a row."
    )


def _complain(found: dict[Row, dict[str, Any]]) -> None:
    for row, line in found.items():
        for text in (*line["findings"], *line["unmeasured"]):
            print(f"{row.name}: {text}", file=sys.stderr)


def write(page: Path, text: str) -> None:
    """Put ``text`` behind the marker, to the end of the page. Raises ValueError where it is missing."""
    before, begin, _ = page.read_text().partition(BEGIN)
    if not begin:
        complaint = f"{page} has no line {BEGIN!r}"
        raise ValueError(complaint)
    page.write_text(f"{before}{BEGIN}\n\n{text}\n")


if __name__ == "__main__":
    sys.exit(main())
