"""The command ``crashcourse``. Data goes to stdout, progress and errors to stderr."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from crashcourse import catalog, screen, text_view
from crashcourse.work import Work
from crashlab import __version__
from crashlab.exits import CONSISTENT, INTERRUPTED, LAB_FAILED, MISUSE, UNMEASURED, VIOLATION, guarded
from longrun.model import KEY_NAME

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from crashcourse.result import Result

EXIT_CODES = """\
exit codes of check:
  0    every case is consistent
  1    violation: some case was lost
  2    unmeasured: something could not be judged, which is not a pass
  3    the judge failed: please report it
  64   misuse; also --coach without a key, or without the client to ask with
A coach that fails is told on stderr and changes no exit code.
"""
_EXIT_OF = {"pass": CONSISTENT, "fail": VIOLATION, "incomplete": UNMEASURED, "judge-error": LAB_FAILED}


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
        return guarded(lambda: int(options.run(options)), "crashcourse")
    except KeyboardInterrupt:
        print("crashcourse: interrupted; progress is as it was before", file=sys.stderr)
        return INTERRUPTED


def build_parser() -> argparse.ArgumentParser:
    """The grammar."""
    parser = _Parser(
        prog="crashcourse",
        description="Lessons on long tasks that survive a crash: list, start, check, hint; and to grade them.",
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"crashcourse {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=_Parser)
    for name, run, text in (
        ("list", _list, "the exercises, and how far you are"),
        ("start", _start, "copy the starter of an exercise into work/"),
        ("check", _check, "judge your file: every case, with one finding explained"),
        ("hint", _hint, "the next of three hints"),
        ("watch", _watch, "check your file whenever you save it"),
        ("doctor", _doctor, "whether this machine is ready"),
    ):
        command = commands.add_parser(name, help=text, description=text)
        command.set_defaults(run=run)
        command.add_argument("--json", action="store_true", help="the data as JSON")
        if name not in ("list", "doctor"):
            command.add_argument("exercise", help="slug or number, such as unbreakable-save or 2.2")
        if name == "hint":
            command.add_argument("--model", action="store_true", help="after all hints and a check: the model answer")
        if name == "check":
            command.add_argument("--file", type=Path, help="judge this file instead of the one in work/")
            command.add_argument("--coach", action="store_true", help=f"let a model comment; the key is in {KEY_NAME}")
            command.add_argument("--jobs", type=int, default=1, help="how many recoveries run at a time")
    _add_grade(commands)
    return parser


def _add_grade(commands: argparse._SubParsersAction[_Parser]) -> None:
    from crashcourse.grading import command as grading  # noqa: PLC0415 - it is loaded for its grammar alone

    text = "judge a folder of submissions, with private twins"
    command = commands.add_parser("grade", help=text, description=text)
    command.add_argument("--json", action="store_true", help="the data as JSON")
    grading.options(command)
    command.set_defaults(run=grading.run)


def _list(options: argparse.Namespace) -> int:
    from crashcourse import progress  # noqa: PLC0415 - as every command, it loads what it needs

    work, every = Work(), catalog.exercises()
    standings = progress.load(work.folder)
    if options.json:
        keys = ("slug", "number", "title", "kind", "effort", "lesson")
        rows = [
            {
                **{key: getattr(each, key) for key in keys},
                "best": standings[each.slug].best if each.slug in standings else 0,
            }
            for each in every
        ]
        print(json.dumps({"schema": "crashcourse.list/1", "exercises": rows}))
        return CONSISTENT
    _show(text_view.listing(every, standings, screen.of(sys.stdout)))
    return CONSISTENT


def _start(options: argparse.Namespace) -> int:
    exercise = catalog.find(options.exercise)
    work = Work()
    file = work.start(exercise)
    todos = file.read_text(encoding="utf-8").count(f"# {catalog.MARK}")
    if options.json:
        print(json.dumps({"schema": "crashcourse.start/1", "file": str(file), "todos": todos}))
        return CONSISTENT
    print(f"created  {file}   {todos} {catalog.MARK}")
    print(f"next     crashcourse check {exercise.slug}")
    return CONSISTENT


def _check(options: argparse.Namespace) -> int:
    from crashcourse.marking import mark  # noqa: PLC0415 - it loads the lab
    from crashlab.progress import Progress  # noqa: PLC0415 - as every command, it loads what it needs

    exercise, work = catalog.find(options.exercise), Work()
    file: Path = options.file or work.submitted(exercise)
    asked = _coach(options, exercise, file)
    with Progress(sys.stderr, name=exercise.slug) as progress:
        result: Result = mark(exercise, file, copied=False, jobs=max(1, options.jobs), progress=progress)
    if options.file is None:
        work.checked(exercise, result)
    if options.json:
        print(json.dumps(result.to_json()))
    else:
        _show(text_view.checked(result, replay=_replay(result), screen=screen.of(sys.stdout)))
    asked(result)
    return _EXIT_OF[result.status]


def _coach(options: argparse.Namespace, exercise: catalog.Exercise, file: Path) -> Callable[[Result], None]:
    """What asks the coach about a result, where one is wanted. Raises UsageError where it cannot be asked at all."""
    if not options.coach:
        return lambda _: None
    from crashcourse import coach, marking  # noqa: PLC0415 - as every command, it loads what it needs

    secret = coach.key(os.environ)
    submission = marking.read(file)

    def asked(result: Result) -> None:
        try:
            found, error = coach.ask(secret, coach.request(exercise, submission, result)), ""
        except (coach.NoComments, KeyboardInterrupt) as none:  # the check was kept, and is not to be interrupted
            found, error = [], str(none) or "interrupted"
        try:
            coach.keep(file, result, found, error)
        except OSError as refused:
            error = error or f"cannot write {coach.NAME} beside {file}: {refused.strerror}"
        if found and not options.json:
            _show(coach.lines(found, screen.of(sys.stdout)))
        if error:
            told = f"no comments of the coach: {error}" if not found else error
            print(f"crashcourse: {screen.of(sys.stderr).safe(told)}; the check stands as it is", file=sys.stderr)
        elif options.json:
            print(f"crashcourse: the coach's comments are in {coach.NAME}", file=sys.stderr)

    return asked


def _replay(result: Result) -> str:
    """The command that replays the finding shown, without its run where that is the latest one anyway."""
    found = next((row.finding for row in result.rows if row.verdict == "violation"), None)
    if found is None or not found.replay:
        return ""
    command, _, run = found.replay.partition(" --run ")
    latest = Path(".crashlab", "latest")
    return command if run and latest.resolve() == Path(run).resolve() else found.replay


def _hint(options: argparse.Namespace) -> int:
    exercise = catalog.find(options.exercise)
    if options.model:
        return _model(options, exercise)
    number = Work().next_hint(exercise)
    if options.json:
        print(json.dumps({"schema": "crashcourse.hint/1", "number": number, "text": exercise.hints[number - 1]}))
        return CONSISTENT
    _show(text_view.hinted(exercise, number, screen.of(sys.stdout)))
    return CONSISTENT


def _model(options: argparse.Namespace, exercise: catalog.Exercise) -> int:
    """The model answer, just as it may be put into the learner's file."""
    text = Work().model_answer(exercise)
    if options.json:
        told = {"exercise": exercise.slug, "idea": exercise.model, "file": exercise.file, "text": text}
        print(json.dumps({"schema": "crashcourse.model/1", **told}))
        return CONSISTENT
    print(text, end="")
    return CONSISTENT


def _watch(options: argparse.Namespace) -> int:
    from crashcourse import watching  # noqa: PLC0415 - as every command, it loads what it needs

    exercise = catalog.find(options.exercise)
    file = Work().submitted(exercise)
    again = argparse.Namespace(exercise=exercise.slug, json=options.json, file=None, jobs=1, model=False, coach=False)
    acts = {"r": lambda: _check(again), "h": lambda: _hint(again), "l": lambda: _list(again)}
    with watching.terminal() as key:
        if not options.json:
            print(f"watching {file}   {watching.KEYS}", flush=True)
        watching.watch(file, acts, key)
    return CONSISTENT


def _doctor(options: argparse.Namespace) -> int:
    from crashcourse import setup  # noqa: PLC0415 - as every command, it loads what it needs

    found = setup.examine(Work().folder)
    if options.json:
        print(json.dumps(found.to_json()))
    else:
        _show(setup.lines(found, screen.of(sys.stdout)))
    return LAB_FAILED if found.broken else CONSISTENT


def _show(lines: Iterable[str]) -> None:
    print("\n".join(lines))
