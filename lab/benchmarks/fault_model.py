"""``python -m benchmarks.fault_model``: the model of power loss held against real file systems.

Needs root, FUSE, loop devices and the mkfs programs. Progress goes to stderr, tables to stdout. Ctrl-C ends
it early and shows what was reached. An image outside of the model is written to a file with everything
that it takes to look into it: ``--replay FILE`` judges it once more, and runs the program again.

Exit codes: 0 all inside, 1 something outside, or a danger not seen, or a false promise not refuted;
2 wrong usage or a kind that cannot be made here; 130 interrupted.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks import fault_tables
from benchmarks.real_runs import again
from benchmarks.validation import KINDS, Tally, validate
from crashlab.crash.profiles import parse_profiles
from crashlab.disk.available import missing
from crashlab.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

PAGE = Path(__file__).parents[1] / "FAULT_MODEL.md"
OUT = Path(".crashlab")
_INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run it, and give the exit code."""
    parser = _parser()
    options = parser.parse_args(arguments)
    try:
        if options.replay:
            return _replay(options.replay)
        kinds = [str(profile) for profile in parse_profiles(options.kinds)]
        if options.write and kinds != list(KINDS):
            parser.error("--write needs all kinds, or the page would tell of some only")
        return _validate(kinds, options)
    except UsageError as error:
        print(error, file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fault_model", description=__doc__)
    parser.add_argument("--images", type=int, default=1_000, help="images per kind (default 1000)")
    parser.add_argument("--seed", type=int, default=0, help="of programs and perturbations (default 0)")
    parser.add_argument("--kinds", default=",".join(KINDS), help=f"default {','.join(KINDS)}")
    parser.add_argument("--write", action="store_true", help=f"put the tables into {PAGE.name}")
    parser.add_argument("--replay", type=Path, metavar="FILE", help="look again at an image outside of the model")
    return parser


def _validate(kinds: list[str], options: argparse.Namespace) -> int:
    for kind in kinds:
        if why := missing(kind):
            text = f"{kind}: {why}"
            raise UsageError(text)
    tallies: list[Tally] = []
    interrupted = False
    try:
        for kind in kinds:
            tallies.append(Tally(kind))
            validate(tallies[-1], options.images, options.seed, lambda tally: _progress(tally, options.images))
            print(file=sys.stderr)
    except KeyboardInterrupt:
        interrupted = True
        print("\ninterrupted; this was reached:", file=sys.stderr)
    text = fault_tables.report(tallies, options.seed)
    print(text)
    wrong = _tell(tallies)
    if options.write and not interrupted and not wrong:
        fault_tables.write(PAGE, text)
    return 1 if wrong else _INTERRUPTED if interrupted else 0


def _progress(tally: Tally, wanted: int) -> None:
    outside = f", {len(tally.outside)} OUTSIDE" if tally.outside else ""
    line = f"{tally.kind}: {tally.images.total():,} of {wanted:,} images, {tally.programs.total():,} runs{outside}"
    print(f"\r{line}" if sys.stderr.isatty() else line, end="" if sys.stderr.isatty() else "\n", file=sys.stderr)


def _tell(tallies: Sequence[Tally]) -> bool:
    """Write the images outside to files, and say what else is wrong. Whether anything is."""
    wrong = False
    for tally in tallies:
        for number, form in enumerate(tally.outside, start=1):
            OUT.mkdir(exist_ok=True)
            path = OUT / f"outside-{tally.kind}-{number}.json"
            path.write_text(json.dumps(form))
            print(f"OUTSIDE on {tally.kind}, {form['program']}, at {form['moment']}: {path}", file=sys.stderr)
            print("\n".join(f"  {line}" for line in form["difference"]), file=sys.stderr)
        for name in tally.open_questions():
            print(f"not shown on {tally.kind}: {name}", file=sys.stderr)
        wrong = wrong or bool(tally.outside or tally.open_questions())
    return wrong


def _replay(path: Path) -> int:
    still, runs = again(path)
    place = "has no place for it" if still else "holds it now"
    print(f"{path}: the model {place}; new runs with images outside: {runs}")
    return int(still or bool(runs))


if __name__ == "__main__":
    sys.exit(main())
