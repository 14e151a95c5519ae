"""``python -m longrun run``: the reference agent against the fake server in this process.

Exit codes: 0 the run is done; 1 it stopped, or waits for a person; 2 its files were refused; 64 misuse.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from longrun.checkpoint.correct import HARNESS
from longrun.errors import Damaged, HistoryExists, UnsupportedVersion, UsageError
from longrun.fake_api import FakeApi
from longrun.inbox import DEFAULT_SEED, make_inbox
from longrun.loop import Agent
from longrun.personas import PERSONAS
from longrun.world import FileOutside, World

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longrun.protocol import Checkpoint

EXIT_DONE, EXIT_UNFINISHED, EXIT_REFUSED, EXIT_USAGE = 0, 1, 2, 64
_VERDICTS = {"done": "DONE", "waiting": "WAITING", "stopped": "STOPPED"}


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Exit with the code of misuse; argparse's own is taken by a verdict."""
        self.print_usage(sys.stderr)
        self.exit(EXIT_USAGE, f"{self.prog}: {message}\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="longrun", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="triage an inbox, durably")
    run.add_argument("--dir", type=Path, default=Path("longrun-run"), help="where the run lives (default: %(default)s)")
    run.add_argument("--resume", action="store_true", help="go on from what is stored there")
    run.add_argument("--persona", choices=PERSONAS, default=PERSONAS[0], help="how the model acts after an unknown")
    run.add_argument("--seed", type=int, default=DEFAULT_SEED, help="which inbox (default: %(default)s)")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code."""
    given = _parser().parse_args(arguments)
    try:
        return _run(given)
    except (UsageError, HistoryExists) as error:
        print(f"longrun: {error}", file=sys.stderr)
        return EXIT_USAGE
    except (Damaged, UnsupportedVersion) as error:
        print(f"longrun: REFUSED {error}", file=sys.stderr)
        return EXIT_REFUSED


def _run(given: argparse.Namespace) -> int:
    directory: Path = given.dir
    if given.resume and not directory.is_dir():
        text = f"there is no run in {directory}: start one without --resume"
        raise UsageError(text)
    try:
        (directory / "agent").mkdir(parents=True, exist_ok=True)
    except OSError as error:
        text = f"cannot make {directory / 'agent'}: {error.strerror}. Pass another --dir."
        raise UsageError(text) from error
    world = World(FileOutside(directory / "world.jsonl"), make_inbox(given.seed))
    agent = Agent(directory / "agent", HARNESS, FakeApi(given.persona, given.seed), world)
    last = agent.resume() if given.resume else agent.start()
    print("\n".join(_summary(last, world, agent)))
    return EXIT_DONE if last.status == "done" else EXIT_UNFINISHED


def _summary(last: Checkpoint, world: World, agent: Agent) -> list[str]:
    seen = world.view()
    counts = f"{last.turns} turns, {last.requests_started} requests, {last.tokens_used} tokens, {last.seq} saves"
    lines = [
        f"{_VERDICTS[last.status]}  {counts}",
        "labels   " + ", ".join(f"{ticket} {label}" for ticket, label in seen["labels"].items()),
        "cases    " + ", ".join(seen["cases"]),
        "replies  " + ", ".join(f"{ticket} {yen} yen" for ticket, yen in seen["replies"]),
        "pages    " + ", ".join(seen["pages"]),
    ]
    lines += [f"decide   {name} {details}: it may or may not have happened" for name, details in agent.unknown()]
    return [*lines, f"files    {agent.directory}"]


if __name__ == "__main__":
    sys.exit(main())
