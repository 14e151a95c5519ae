"""``longrun points``, ``rewind`` and ``fork``: look at the saves of a run, and go back."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from longrun.errors import UsageError
from longrun.rewind import points, timelines
from longrun.rewind.correct import HARNESS
from longrun.rewind.timelines import Goal

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from longrun.protocol import Checkpoint


NAMES = ("points", "rewind", "fork")


def add_to(commands: argparse._SubParsersAction[Any]) -> None:
    """Add the three commands to those of the command line."""
    for name, words, action in (
        ("points", "list the saves of a run", _points),
        ("rewind", "go back to one of them: the world and the counters stay as they are", _rewind),
        ("fork", "begin a second line at one of them", _fork),
    ):
        parser = commands.add_parser(name, help=words)
        parser.add_argument("--dir", type=Path, default=Path("longrun-run"), help="where the run lives")
        parser.add_argument("--line", metavar="NAME", help="the fork that is meant (default: the run itself)")
        parser.set_defaults(action=action)
        if name == "fork":
            parser.add_argument("name", help="what to call it")
        if name != "points":
            goal = parser.add_mutually_exclusive_group(required=True)
            goal.add_argument("--seq", type=int, help="the number of a point")
            goal.add_argument("--turn", type=int, help="the end of a turn, on the line of the head")


def place_of(directory: Path, line: str | None) -> Path:
    """The directory of a line, for a run that lives in ``directory``. Raises UsageError where there is none."""
    agent = directory / "agent"
    place = timelines.place_of(agent, line) if line else agent
    if not points.numbers(place):
        text = f"{place} keeps no points: start a run with longrun run, or a line beside one with longrun fork"
        raise UsageError(text)
    return place


def carry_out(given: argparse.Namespace) -> None:
    """Do what was asked for, and print it. Raises as :mod:`longrun.rewind.timelines` does."""
    action: Callable[[Path, argparse.Namespace], None] = given.action
    action(place_of(given.dir, given.line), given)


def _points(place: Path, _given: argparse.Namespace) -> None:
    for seq in points.numbers(place):
        print(_row(points.read_point(place, seq)))


def _rewind(place: Path, given: argparse.Namespace) -> None:
    print("REWOUND", _row(timelines.rewind(HARNESS, place, Goal(seq=given.seq, turn=given.turn))))


def _fork(place: Path, given: argparse.Namespace) -> None:
    there = timelines.fork(HARNESS, place, given.name, Goal(seq=given.seq, turn=given.turn))
    print("FORKED ", _row(points.read_point(there, points.numbers(there)[0])))


def _row(point: Checkpoint) -> str:
    calls = f", {len(point.pending_tool_use)} calls open" if point.pending_tool_use else ""
    what = f"turn {point.turns}, {point.status}{calls}, {point.tokens_used} tokens"
    return f"{point.seq:>5}  {point.timeline:<10}  from {point.parent or '-':<5}  {what}"
