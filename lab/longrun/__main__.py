"""``longrun run DIR`` triages an inbox, durably; ``longrun decide DIR`` answers what only a person can tell.

The agent is that of lesson 6; a run that is kept in one file, as that of lesson 2, is gone on with as such. It asks
the fake server in this process, or a live model.

``points``, ``rewind`` and ``fork`` go back in a run: each save is a point of its own. ``log inspect``, ``verify`` and
``show`` look at a session of an event log; their codes are those of :mod:`longrun.eventlog.cli`.

Exit codes: 0 the run is done, or the answer is recorded; 1 it stopped, or waits for a person; 2 its files were
refused, or another process took them over; 64 misuse.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from longrun import questions, v1
from longrun.caps import TURN_LIMIT, Caps
from longrun.capstone.correct import HARNESS
from longrun.checkpoint import correct as one_file
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
from longrun.eventlog import cli as event_log
from longrun.fake_api import FakeApi
from longrun.inbox import DEFAULT_SEED, make_inbox
from longrun.loop import MODEL_NAME, Agent
from longrun.model import KEY_NAME, LIVE_MODEL
from longrun.personas import PERSONAS
from longrun.protocol import CHECKPOINT_NAME
from longrun.rewind import commands as rewinding
from longrun.world import FileOutside, World

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from longrun.harness import Harness
    from longrun.model import Model
    from longrun.protocol import Checkpoint

EXIT_DONE, EXIT_UNFINISHED, EXIT_REFUSED, EXIT_USAGE = 0, 1, 2, 64
DEFAULT_DIRECTORY = Path("longrun-run")
_ANSWERS: dict[str, questions.Answer] = {"happened": "done", "absent": "absent"}
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
    _add_directory(run)
    run.add_argument("--resume", action="store_true", help="go on from what is stored there")
    run.add_argument("--line", metavar="NAME", help="resume the fork of this name")
    model = run.add_mutually_exclusive_group()
    model.add_argument("--persona", choices=PERSONAS, default=PERSONAS[0], help="how the fake acts after an unknown")
    model.add_argument("--live", action="store_true", help=f"ask {LIVE_MODEL}, which costs; the key is in {KEY_NAME}")
    run.add_argument("--seed", type=int, default=DEFAULT_SEED, help="which inbox (default: %(default)s)")
    over_all = "over all processes of the run; give it at each resume"
    run.add_argument(
        "--max-turns",
        type=int,
        default=TURN_LIMIT,
        metavar="N",
        help=f"stop after so many answers (%(default)s), {over_all}",
    )
    run.add_argument("--max-tokens", type=int, metavar="N", help=f"ask no more from so many tokens on, {over_all}")
    decide = commands.add_parser("decide", help="show what a run asks a person, or answer it")
    _add_directory(decide)
    decide.add_argument("act", nargs="?", help="which act, as it is shown: T-101/page_oncall")
    decide.add_argument("answer", nargs="?", choices=_ANSWERS, help="whether it happened; if not, it may be done again")
    rewinding.add_to(commands)
    event_log.add_to(commands)
    return parser


def _add_directory(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("where", nargs="?", type=Path, metavar="DIR", help=f"where the run lives ({DEFAULT_DIRECTORY})")
    parser.add_argument("--dir", type=Path, help="the same, by name")


def _directory(given: argparse.Namespace) -> Path:
    if given.dir is not None and given.where is not None:
        text = f"two directories: {given.where} and --dir {given.dir}; give one"
        raise UsageError(text)
    return given.dir or given.where or DEFAULT_DIRECTORY


def _harness(directory: Path) -> Harness:
    """The pieces that fit what lies there."""
    kept_in_one_file = any((directory / name).exists() for name in (CHECKPOINT_NAME, v1.EFFECTS_NAME))
    return one_file.HARNESS if kept_in_one_file else HARNESS


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code."""
    given = _parser().parse_args(arguments)
    try:
        if given.command == event_log.NAME:
            return event_log.carry_out(given)
        if given.command in rewinding.NAMES:
            rewinding.carry_out(given)
            return EXIT_DONE
        return _run(given) if given.command == "run" else _decide(given)
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
    directory = _directory(given)
    caps = Caps(turns=given.max_turns, tokens=given.max_tokens)
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
    place = rewinding.place_of(directory, given.line) if given.line else directory / "agent"
    agent = Agent(place, replace(_harness(place), cap=caps), model, world, model_name=name)
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
    if last.status == "stopped" and last.end is not None:
        lines.append(f"stopped  {last.end['reason']}: {last.end['text']}")
    lines += [f"decide   {question.text()}" for question in agent.questions()]
    return [*lines, f"files    {agent.directory}"]


def _decide(given: argparse.Namespace) -> int:
    directory = _directory(given)
    if not (directory / "agent").is_dir():
        text = f"there is no run in {directory}"
        raise UsageError(text)
    place = directory / "agent"
    harness = _harness(place)
    if given.act is not None:
        if given.answer is None:
            text = f"say whether {given.act} happened: {' or '.join(_ANSWERS)}"
            raise UsageError(text)
        questions.answer(place, harness, given.act, _ANSWERS[given.answer])
        print(f"RECORDED  {given.act}: {questions.WORDS[_ANSWERS[given.answer]]}")
    left = questions.open_questions(place, harness)
    print("\n".join(f"decide   {question.text()}" for question in left) or _nothing_asked(directory))
    return EXIT_UNFINISHED if left else EXIT_DONE


def _nothing_asked(directory: Path) -> str:
    return f"nothing is asked; go on with: longrun run --resume {directory}"


if __name__ == "__main__":
    sys.exit(main())
