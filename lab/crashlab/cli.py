"""The command ``crashlab``: check, run, show, report, replay, demo, doctor, init.

Data goes to stdout, progress and errors to stderr. argparse would leave with 2 on misuse, which here
means "unmeasured", so its exit is our own. What a command does is in :mod:`crashlab.commands`; this
module holds the grammar and the exit codes, and imports no stage of the lab.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from crashlab import __version__
from crashlab.errors import UsageError
from crashlab.exits import INTERRUPTED, MISUSE, guarded

if TYPE_CHECKING:
    from collections.abc import Sequence

EXIT_CODES = """\
exit codes:
  0    consistent: every crash state led to what was demanded
  1    violation: the subject broke a promise
  2    unmeasured: the lab could not judge, which is not a pass
  3    the lab failed: please report it
  64   misuse: the command or the subject cannot be used like that
  130  interrupted

Of several subjects the worst counts: 3, 64, 1, 2, 0. show and report exit 0 when there was something to show,
demo when every naive agent was found and every correct one passed, doctor unless nothing can be judged here (2).
Read from the environment: CRASHLAB_BUDGET, CRASHLAB_FAULTS, CRASHLAB_JOBS, CRASHLAB_OUT, NO_COLOR;
CRASHLAB_NO_NAMESPACE=1 recovers one state at a time, without a mount namespace;
CRASHLAB_ISOLATED=1 gives every step of every recovery a process of its own.
"""


FAULTS = "of kill, power, error, damage, recovery, race, with parts such as error:EIO; all; default kill,power"


class _Parser(argparse.ArgumentParser):
    """An ArgumentParser that leaves with 64 on misuse."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong and how to go on, then leave."""
        self.print_usage(sys.stderr)
        self.exit(MISUSE, f"{self.prog}: {message}; see {self.prog} --help\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code. Raises SystemExit for --help, --version and misuse."""
    parser = build_parser()
    options = parser.parse_args(arguments)
    if options.command is None:
        parser.print_help(sys.stderr)
        return MISUSE
    try:
        return guarded(lambda: _run(options))
    except KeyboardInterrupt:  # how far it had come stands on the line before, from Progress
        print("crashlab: interrupted; no result was kept of what was running", file=sys.stderr)
        return INTERRUPTED


def _run(options: argparse.Namespace) -> int:
    try:
        here = os.getcwd()
    except FileNotFoundError as error:
        text = "the current directory does not exist any more; change into one that does"
        raise UsageError(text) from error
    if here not in sys.path:  # like python -m: subjects lie where one works
        sys.path.insert(0, here)
    commands = importlib.import_module("crashlab.commands")
    code: int = getattr(commands, options.command)(options)
    return code


# --- grammar -------------------------------------------------------------------------------------


def build_parser() -> argparse.ArgumentParser:
    """The whole grammar of the command line."""
    parser = _Parser(
        prog="crashlab",
        description="Kill a program at every step it takes, run its real recovery on what is left, judge the result.",
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"crashlab {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    _add_check(commands)
    _add_program(commands)
    _add_show(commands)
    _add_report(commands)
    _add_replay(commands)
    _add_demo(commands)
    _add_doctor(commands)
    _add_init(commands)
    return parser


def _add(commands: argparse._SubParsersAction[_Parser], name: str, text: str) -> argparse.ArgumentParser:
    return commands.add_parser(
        name,
        help=text,
        description=f"{text[0].upper()}{text[1:]}.",
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def _add_check(commands: argparse._SubParsersAction[_Parser]) -> None:
    parser = _add(commands, "check", "try every crash of one or more subjects")
    words = "a subject that crashlab.toml declares, or an object such as myapp.crash:checkpoint; default: all declared"
    parser.add_argument("subjects", nargs="*", metavar="NAME|MODULE:OBJECT", help=words)
    looked_for = "default: crashlab.toml here or above, up to the repository's root"
    parser.add_argument("--config", type=Path, metavar="FILE", help=f"the file that declares subjects; {looked_for}")
    parser.add_argument("--list", action="store_true", help="only name the subjects")
    _add_trial_options(parser)


def _add_trial_options(parser: argparse.ArgumentParser) -> None:
    """The options of every command that judges subjects of the user."""
    _add_lab_options(parser)
    disks = "also lose power on a real file system: ext4, xfs or btrfs (Linux, root)"
    parser.add_argument("--disk", metavar="KIND", help=disks)
    parser.add_argument(
        "--redundant", action="store_true", default=None, help="also tell which barriers (fsync) change nothing"
    )
    accepted = "the file of accepted findings; default: crashlab-baseline.toml beside crashlab.toml"
    parser.add_argument("--baseline", type=Path, metavar="FILE", help=accepted)
    parser.add_argument("--accept", metavar="REASON", help="accept the findings of this check: write them there")
    parser.add_argument("--no-page", action="store_true", help="draw no report.html: crashlab report does it later")
    parser.add_argument("--only", metavar="ID", help="judge one crash state, for example kill@7")
    _add_view_options(parser)


def _add_program(commands: argparse._SubParsersAction[_Parser]) -> None:
    parser = _add(commands, "run", "try every crash of a program in any language (Linux, strace)")
    words = "the program; {dir} is its directory. One word with blanks goes to sh"
    parser.add_argument("start", nargs="+", metavar="COMMAND", help=words)
    parser.add_argument("--resume", metavar="CMD", help="how it goes on after a crash; default: as it starts")
    parser.add_argument("--view", metavar="CMD", help="prints the end of the program; default: the files in {dir}")
    parser.add_argument("--check", metavar="CMD", help="exits with 0 where all is right, with 1 where it is not")
    parser.add_argument("--stop-after-acks", type=int, metavar="N", help="a program without end: kill it at this ack")
    parser.add_argument("--timeout-s", type=float, default=10.0, metavar="S", help="for each recovery; default 10")
    _add_trial_options(parser)


def _add_show(commands: argparse._SubParsersAction[_Parser]) -> None:
    parser = _add(commands, "show", "show a stored result: all findings, one finding, or the ops")
    parser.add_argument("id", nargs="?", metavar="ID", help="a finding, for example kill@7; without it, all")
    _add_run_option(parser)
    parser.add_argument("--trace", action="store_true", help="show the recorded ops")
    issue = "print a bug report in Markdown, with a script that rebuilds the crash state"
    parser.add_argument("--issue", action="store_true", help=issue)
    _add_view_options(parser)


def _add_report(commands: argparse._SubParsersAction[_Parser]) -> None:
    parser = _add(commands, "report", "draw a stored result: as text, JSON, a page, JUnit XML or a GitHub summary")
    words = "a run folder, or a file that --json printed; default the latest run"
    parser.add_argument("directories", nargs="*", type=Path, metavar="DIR", help=words)
    forms = ("text", "json", "html", "junit", "github")
    parser.add_argument("--format", choices=forms, default="text", help="default text")
    to = "where it goes; default stdout, and for html report.html in the run folder"
    parser.add_argument("--output", type=Path, metavar="FILE", help=to)
    _add_out_option(parser)
    parser.add_argument("--no-color", action="store_true", help="no colours, as with NO_COLOR set")


def _add_replay(commands: argparse._SubParsersAction[_Parser]) -> None:
    parser = _add(commands, "replay", "recover one stored crash state again")
    parser.add_argument("id", metavar="ID", help="a crash state, for example kill@7")
    _add_run_option(parser)
    parser.add_argument("--into", type=Path, metavar="DIR", help="also write the crash state there, to look at")
    _add_view_options(parser)


def _add_demo(commands: argparse._SubParsersAction[_Parser]) -> None:
    parser = _add(commands, "demo", "check the naive and the correct agents of longrun side by side")
    _add_lab_options(parser)
    _add_view_options(parser)


def _add_doctor(commands: argparse._SubParsersAction[_Parser]) -> None:
    parser = _add(commands, "doctor", "say what works on this machine, and what to install")
    _add_view_options(parser)


def _add_init(commands: argparse._SubParsersAction[_Parser]) -> None:
    parser = _add(commands, "init", "look at a code base, and write a first crashlab.toml and a first test file")
    words = "the folder of the project; default: this one. Its code is read and never run"
    parser.add_argument("dir", nargs="?", type=Path, default=Path(), metavar="DIR", help=words)


def _add_lab_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--faults", metavar="LIST", help=FAULTS)
    profiles = "file systems of a power loss: ext4, xfs, btrfs, posix, with options such as ext4[data=journal]"
    parser.add_argument("--profile", metavar="LIST", help=f"{profiles}; default ext4,xfs,btrfs")
    parser.add_argument("--budget", choices=("quick", "full", "brief"), help="how much is tried; default quick")
    parser.add_argument("--seed", type=int, metavar="N", help="chooses the samples; default 0")
    parser.add_argument("--jobs", type=int, metavar="N", help="recoveries at a time; default one per core")
    parser.add_argument("--recorder", choices=("auto", "python", "strace"), help="how the run is watched; default auto")
    _add_out_option(parser)


def _add_run_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--run", type=Path, metavar="DIR", help="a run folder; default the latest")
    _add_out_option(parser)


def _add_out_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", type=Path, metavar="DIR", help="where runs are kept; default .crashlab")


def _add_view_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON (crashlab.reports/1) instead of text")
    parser.add_argument("--quiet", action="store_true", help="no progress on stderr")
    parser.add_argument("--no-color", action="store_true", help="no colours, as with NO_COLOR set")
