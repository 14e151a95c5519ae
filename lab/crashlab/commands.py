"""What each command of the command line does, and how its result is shown.

A text result goes to stdout as wide as the terminal is, but never over 100 columns; with colours only
on a terminal that wants them, in ASCII where the stream cannot carry more. ``--json`` prints JSON and
nothing else.
"""

from __future__ import annotations

import codecs
import dataclasses
import difflib
import importlib
import json
import os
import shutil
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

from crashlab.chosen import Chosen, chosen
from crashlab.errors import UsageError
from crashlab.exits import CONSISTENT, LAB_FAILED, MISUSE, UNMEASURED, VIOLATION, guarded
from crashlab.progress import Progress, is_terminal
from crashlab.report.folder import RunFolder
from crashlab.report.load import dump, load
from crashlab.settings import out_folder, resolve
from crashlab.side_by_side import Checked, check_side_by_side
from crashlab.subject import Commands

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from crashlab.report.model import Report

WIDEST = 100
NARROWEST = 60
WORST_FIRST = (LAB_FAILED, MISUSE, VIOLATION, UNMEASURED, CONSISTENT)
CODES = {"consistent": CONSISTENT, "violation": VIOLATION, "unmeasured": UNMEASURED}


def check(options: argparse.Namespace) -> int:
    """Check each subject; a failure of one does not keep the others from being tried."""
    subjects = chosen(options.subjects, options.config)
    if options.list:
        return _list(subjects, options)
    return _check_all(subjects, options)


def _list(subjects: Sequence[Chosen], options: argparse.Namespace) -> int:
    """Name the subjects that would be checked."""
    about = {each.name: "" if each.declared is None else each.declared.about for each in subjects}
    if options.json:
        rows = [{"name": name, "about": text} for name, text in about.items()]
        _print(json.dumps({"schema": "crashlab.subjects/1", "subjects": rows}) + "\n")
        return CONSISTENT
    from crashlab.report.page import printable  # noqa: PLC0415 - rich is imported only when something is drawn

    shown = {printable(name): printable(text) for name, text in about.items()}
    width = max(map(len, shown))
    _print("".join(f"{name.ljust(width)}  {text}".rstrip() + "\n" for name, text in shown.items()))
    return CONSISTENT


def run(options: argparse.Namespace) -> int:
    """Check a program in any language, given by its commands."""
    start: Sequence[str] | str = options.start
    if len(start) == 1 and " " in start[0]:
        start = start[0]
    subject = Commands(
        start,
        options.resume,
        view=options.view,
        check=options.check,
        stop_after_acks=options.stop_after_acks,
        timeout_s=options.timeout_s,
        name=_name_of(options.start),
    )
    return _check_all([Chosen(subject=subject)], options)


def _name_of(start: Sequence[str]) -> str:
    """What a program is called: the script that an interpreter runs, or else the command.

    >>> _name_of(["node agent.js write {dir}"]), _name_of(["python", "-m", "agent"]), _name_of(["/bin/agent", "run"])
    ('agent.js', 'python', 'agent')
    """
    words = start[0].split() if len(start) == 1 else start
    script = next((word for word in words[1:2] if os.path.splitext(word)[1]), words[0])
    return os.path.basename(script)


def demo(options: argparse.Namespace) -> int:
    """Check every agent that longrun offers, naive next to correct; 0 where each came out as it must.

    A naive one must be a violation of its own kind and of nothing graver, a correct one consistent.
    """
    try:
        exhibits = importlib.import_module("longrun.demo").DEMO
    except ModuleNotFoundError as error:
        if error.name not in ("longrun", "longrun.demo"):
            raise
        text = "the demo checks the agents of longrun, which is not installed here; install crashlab with longrun"
        raise UsageError(text) from error
    checked = _side_by_side([(exhibit.subject, exhibit.options) for exhibit in exhibits], options)
    reports = [each.report for each in checked if each.report is not None]
    _show(reports, options)
    if len(reports) < len(exhibits):  # some had no result at all: their own codes say why
        return min((each.code for each in checked), key=WORST_FIRST.index)
    pairs = zip(reports, exhibits, strict=True)
    odd = [(report, exhibit) for report, exhibit in pairs if not _as_exhibited(report, exhibit.kind)]
    for report, exhibit in odd:
        wanted = exhibit.kind or "a pass"
        print(f"crashlab: {exhibit.subject} must show {wanted} and came out {report.verdict}", file=sys.stderr)
    if kept := guarded(partial(_keep_together, reports, options)):
        return kept
    if all(report.verdict != "unmeasured" for report, _ in odd):
        return VIOLATION if odd else CONSISTENT
    return UNMEASURED


def _keep_together(reports: Sequence[Report], options: argparse.Namespace) -> int:
    """All reports of the demo on one page, in the folder of all runs."""
    views, out = importlib.import_module("crashlab.report.views"), _out(options)
    if out.is_dir():  # unless no run got that far
        views.write(views.draw(reports, "html"), out / "demo.html")
        if not options.quiet:
            print(f"crashlab: all of them on one page: {out / 'demo.html'}", file=sys.stderr)
    return CONSISTENT


def _side_by_side(subjects: Sequence[tuple[str, Sequence[str]]], options: argparse.Namespace) -> list[Checked]:
    """Check all of them, as many at a time as there are jobs, in brief unless another budget is asked for."""
    jobs = resolve(jobs=options.jobs).jobs
    names = ("faults", "profile", "budget", "seed", "recorder", "out")
    given = {name: value for name in names if (value := getattr(options, name)) is not None}
    # What a project says of its own checks is not meant for these; where it keeps its runs is.
    usual = {"budget": "brief", "out": out_folder(options.out), "config": os.devnull}
    passed_on = [f"--{name}={value}" for name, value in {**usual, **given}.items()]
    at_a_time = min(jobs + 1, len(subjects))  # one more than cores: a check also waits, for its own processes
    with Progress(sys.stderr, name="demo", quiet=options.quiet) as progress:
        return check_side_by_side(
            subjects, [*passed_on, f"--jobs={max(1, jobs // at_a_time)}"], at_a_time=at_a_time, progress=progress
        )


def _as_exhibited(report: Report, kind: str) -> bool:
    if not kind:
        return report.verdict == "consistent"
    return report.verdict == "violation" and report.findings[0].kind == kind and not report.unmeasured


def show(options: argparse.Namespace) -> int:
    """Show a stored report, one of its findings, or the recorded ops."""
    run = RunFolder.open(options.run, _out(options))
    if options.trace:
        _show_trace(run, options)
        return CONSISTENT
    report = load(run.report())
    if options.id is None and options.issue:
        text = "an issue is about one finding; name it: crashlab show ID --issue"
        raise UsageError(text)
    if options.id is None:
        _show([report], options)
        return CONSISTENT
    report = _only_finding(report, options.id)
    if options.issue:
        render_issue = importlib.import_module("crashlab.report.issue").render_issue
        _print(render_issue(run, report, report.findings[0]))
    elif options.json:
        _print(dump([report]) + "\n")
    else:
        from crashlab.report.text import render_finding  # noqa: PLC0415 - rich is imported only when something is drawn

        _print(render_finding(report.findings[0], report.subject, **_view(options)))
    return CONSISTENT


def report(options: argparse.Namespace) -> int:
    """Draw stored reports in the format that is asked for. A page goes into its run folder unless told otherwise."""
    views = importlib.import_module("crashlab.report.views")
    found = [views.stored(path, _out(options)) for path in options.directories or [None]]
    reports = [each for reports, _ in found for each in reports]
    if options.format == "html" and options.output is None:
        if len(reports) != 1 or found[0][1] is None:
            text = "a page of several reports, or of a file, belongs to no run folder; name a file: --output FILE"
            raise UsageError(text)
        _print(f"{found[0][1].save_text(views.PAGE, views.draw(reports, 'html'))}\n")
        return CONSISTENT
    to_stdout = options.output is None or str(options.output) == "-"
    view = _view(options) if to_stdout else {"color": False}
    text = views.draw(reports, options.format, **view)
    if to_stdout:
        _print(text)
    else:
        views.write(text, options.output)
    return CONSISTENT


def replay(options: argparse.Namespace) -> int:
    """Recover one stored crash state again."""
    again = importlib.import_module("crashlab.replay").replay
    run = RunFolder.open(options.run, _out(options))
    report = again(run, options.id, into=options.into)
    _show([report], options)
    return CODES[report.verdict]


def doctor(options: argparse.Namespace) -> int:
    """Say what works here; 0 where the core does."""
    from crashlab import doctor as examined  # noqa: PLC0415 - only this command looks at the machine

    findings = examined.examine()
    works = examined.works(findings)
    if options.json:
        _print(json.dumps(examined.to_json(findings)) + "\n")
    else:
        from crashlab.report.examined import render_examined  # noqa: PLC0415 - rich only when something is drawn

        _print(render_examined(findings, works=works, **_view(options)))
    return CONSISTENT if works else UNMEASURED


def init(options: argparse.Namespace) -> int:
    """Look at a code base, and write a first test file and a first crashlab.toml."""
    from crashlab.starter import start  # noqa: PLC0415 - once in the life of a project

    _print(start(options.dir))
    return CONSISTENT


# --- checking ------------------------------------------------------------------------------------


def _check_all(subjects: Sequence[Chosen], options: argparse.Namespace) -> int:
    reports: list[Report] = []
    codes = [guarded(partial(_check_one, subject, options, reports)) for subject in subjects]
    _show(reports, options)
    if options.no_page:
        return min(codes, key=WORST_FIRST.index)
    keep_page = importlib.import_module("crashlab.report.views").keep_page
    codes += [guarded(partial(_keep, keep_page, each)) for each in reports]
    return min(codes, key=WORST_FIRST.index)


def _keep(keep_page: Callable[[Report], Path | None], report: Report) -> int:
    keep_page(report)
    return CONSISTENT


def _check_one(each: Chosen, options: argparse.Namespace, reports: list[Report]) -> int:
    explore = importlib.import_module("crashlab.pipeline").explore
    baseline = None if options.baseline is None else os.path.abspath(options.baseline)  # a subject has a folder
    with (
        Progress(sys.stderr, name=each.name, quiet=options.quiet) as progress,
        each.here(options.out) as (subject, out),
    ):
        report: Report = explore(
            subject,
            faults=options.faults,
            profile=options.profile,
            budget=options.budget,
            seed=options.seed,
            jobs=options.jobs,
            recorder=options.recorder,
            only=options.only,
            disk=options.disk,
            redundant=options.redundant,
            out=out,
            baseline=baseline,
            accept=options.accept,
            progress=progress,
        )
    reports.append(report)
    return CODES[report.verdict]


# --- showing -------------------------------------------------------------------------------------


def _show(reports: Sequence[Report], options: argparse.Namespace) -> None:
    if options.json:
        _print(dump(reports) + "\n")
    elif reports:
        from crashlab.report.text import render_many  # noqa: PLC0415 - rich is imported only when something is drawn

        _print(render_many(reports, **_view(options)))


def _only_finding(report: Report, state_id: str) -> Report:
    """The report with one finding: the one at this state, or the one that this state is another case of."""
    findings = (*report.findings, *(each.finding for each in report.accepted))
    for finding in findings:
        if finding.id == state_id:
            return dataclasses.replace(report, findings=(finding,))
    for finding in findings:
        if state_id in finding.same:
            return dataclasses.replace(report, findings=(finding,))
    ids = [finding.id for finding in findings]
    near = difflib.get_close_matches(state_id, ids, n=1)
    hint = f"; did you mean {near[0]!r}" if near else ""
    known = f"it has {', '.join(ids)}" if ids else "it has none"
    text = f"no finding {state_id!r} in the run {report.run}{hint}; {known}"
    raise UsageError(text)


def _show_trace(run: RunFolder, options: argparse.Namespace) -> None:
    trace = run.trace()
    if options.json:
        _print(json.dumps(trace.to_json()) + "\n")
        return
    from crashlab.report.trace_view import render_trace  # noqa: PLC0415 - rich is imported only when something is drawn

    _print(render_trace(trace, **_view(options)))


def _print(text: str) -> None:
    """Write to stdout. A reader that has gone, as ``head`` does, is no failure: the exit code still counts."""
    if sys.stdout is None:  # closed by the shell: nobody wants the text
        return
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:  # the interpreter flushes once more at its end, and must find an open stream
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        message = f"cannot write the result to standard output: {error}; it is kept in the run folder"
        raise UsageError(message) from error


def _out(options: argparse.Namespace) -> Path:
    return out_folder(options.out)


def _view(options: argparse.Namespace) -> dict[str, Any]:
    terminal = is_terminal(sys.stdout)
    columns = shutil.get_terminal_size((WIDEST, 24)).columns if terminal else WIDEST
    return {
        "color": terminal and not options.no_color and not os.environ.get("NO_COLOR"),
        "width": max(NARROWEST, min(columns, WIDEST)),
        "ascii_only": not _carries_unicode(sys.stdout.encoding if sys.stdout else None),
    }


def _carries_unicode(encoding: str | None) -> bool:
    try:
        return codecs.lookup(encoding or "ascii").name.startswith("utf")
    except LookupError:
        return False
