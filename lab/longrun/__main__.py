"""``python -m longrun run``: the reference agent, against the fake server in this process or a live model.

``points``, ``rewind`` and ``fork`` go back in a run that was started with ``--points``.

Exit codes: 0 the run is done; 1 it stopped, or waits for a person; 2 its files were refused, or another process
took them over; 64 misuse.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from longrun.checkpoint.correct import HARNESS
from longrun.errors import (
    ApiError,
    Damaged,
    HistoryExists,
    IncompleteResponse,
    LeaseHeld,
    LostLease,
    UnsupportedVersion,
    UsageError,
)
from longrun.fake_api import FakeApi
from longrun.inbox import DEFAULT_SEED, make_inbox
from longrun.loop import MODEL_NAME, Agent
from longrun.personas import PERSONAS
from longrun.rewind import commands as rewinding
from longrun.rewind import points
from longrun.rewind.correct import HARNESS as POINTS_HARNESS
from longrun.world import FileOutside, World

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from longrun.model import Model
    from longrun.protocol import Checkpoint

EXIT_DONE, EXIT_UNFINISHED, EXIT_REFUSED, EXIT_USAGE = 0, 1, 2, 64
LIVE_MODEL = "claude-haiku-4-5"
"""The model of ``--live``: small, and it answers without blocks that a transcript here cannot hold."""
KEY_NAME = "ANTHROPIC_API_KEY"
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
    run.add_argument("--points", action="store_true", help="keep every save, to go back to it (rewind, fork)")
    run.add_argument("--line", metavar="NAME", help="resume the fork of this name")
    model = run.add_mutually_exclusive_group()
    model.add_argument("--persona", choices=PERSONAS, default=PERSONAS[0], help="how the fake acts after an unknown")
    model.add_argument("--live", action="store_true", help=f"ask {LIVE_MODEL}, which costs; the key is in {KEY_NAME}")
    run.add_argument("--seed", type=int, default=DEFAULT_SEED, help="which inbox (default: %(default)s)")
    rewinding.add_to(commands)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code."""
    given = _parser().parse_args(arguments)
    try:
        if given.command != "run":
            rewinding.carry_out(given)
            return EXIT_DONE
        return _run(given)
    except (UsageError, HistoryExists, LeaseHeld) as error:
        print(f"longrun: {error}", file=sys.stderr)
        return EXIT_USAGE
    except (Damaged, UnsupportedVersion) as error:
        print(f"longrun: REFUSED {error}", file=sys.stderr)
        return EXIT_REFUSED
    except LostLease as error:
        print(f"longrun: LOST {error}", file=sys.stderr)
        return EXIT_REFUSED
    except (ApiError, IncompleteResponse) as error:
        print(f"longrun: STOPPED {error}. What came before is saved: go on with --resume.", file=sys.stderr)
        return EXIT_UNFINISHED


@contextlib.contextmanager
def _model(given: argparse.Namespace) -> Iterator[tuple[Model, str]]:
    """The model to ask, and its name. Raises UsageError where a live one cannot be had."""
    if not given.live:
        yield FakeApi(given.persona, given.seed), MODEL_NAME
        return
    key = os.environ.get(KEY_NAME)
    if not key:
        text = f"--live asks a real model, which needs a key in {KEY_NAME}; without --live no key is needed"
        raise UsageError(text)
    try:
        from longrun.client import ClientModel  # noqa: PLC0415 - only a live run needs the client
    except ImportError as error:
        text = "--live needs the client: pip install 'crashlab[agents]'"
        raise UsageError(text) from error
    with ClientModel.live(key) as model:
        yield model, LIVE_MODEL


def _run(given: argparse.Namespace) -> int:
    with _model(given) as (model, name):
        return _run_with(model, name, given)


def _run_with(model: Model, name: str, given: argparse.Namespace) -> int:
    directory: Path = given.dir
    if given.line and not given.resume:
        text = "--line goes on with a fork, so it needs --resume"
        raise UsageError(text)
    if given.resume and not directory.is_dir():
        text = f"there is no run in {directory}: start one without --resume"
        raise UsageError(text)
    try:
        (directory / "agent").mkdir(parents=True, exist_ok=True)
    except OSError as error:
        text = f"cannot make {directory / 'agent'}: {error.strerror}. Pass another --dir."
        raise UsageError(text) from error
    world = World(FileOutside(directory / "world.jsonl"), make_inbox(given.seed))
    place = directory / "agent"
    keeps = given.points or points.numbers(place)
    if given.line:
        place = rewinding.place_of(directory, given.line)
    agent = Agent(place, POINTS_HARNESS if keeps else HARNESS, model, world, model_name=name)
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
