"""Several subjects checked at the same time, each by a lab in a process of its own.

A check has stretches that keep one core busy: recording, real kills, fresh interpreters. Two checks
side by side fill each other's gaps. Each is ``python -m crashlab check --json``: what comes back is the
same JSON that any program would get. Each dies with us (on Linux), and its keeper clears up after it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from functools import partial
from typing import IO, TYPE_CHECKING

from crashlab.recover import sweep
from crashlab.report.load import load

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from crashlab.report.model import Report

_TICK_S = 0.2


@dataclass(frozen=True)
class Checked:
    """How one check ended: its exit code, and its report unless it had none."""

    subject: str
    code: int
    report: Report | None


@dataclass(frozen=True)
class _Running:
    position: int
    subject: str
    process: subprocess.Popen[bytes]
    output: IO[bytes]


def check_side_by_side(
    subjects: Sequence[tuple[str, Sequence[str]]],
    options: Sequence[str],
    *,
    at_a_time: int,
    progress: Callable[[str, int, int], None],
) -> list[Checked]:
    """Check every subject with its own command line options and these; the results in the order of ``subjects``.

    The last is started first: a list goes from the simple to the long, and a long one at the end would
    leave the other cores idle.
    What a check says on stderr goes to ours. An interrupt ends the checks that run, silently, and is raised.
    """
    waiting, running = list(enumerate(subjects)), list[_Running]()
    done: dict[int, Checked] = {}
    try:
        while waiting or running:
            while waiting and len(running) < at_a_time:
                position, (subject, own) = waiting.pop()
                running.append(_start(position, subject, [*own, *options]))
            _wait(running[0].process)
            for each in [each for each in running if each.process.poll() is not None]:
                running.remove(each)
                done[each.position] = _result(each)
            progress("agents checked", len(done), len(subjects))
    except BaseException:
        _interrupt(running)
        raise
    return [done[position] for position in range(len(subjects))]


def _start(position: int, subject: str, options: Sequence[str]) -> _Running:
    output = tempfile.TemporaryFile()  # noqa: SIM115 - read and closed when the process has ended
    command = [sys.executable, "-m", "crashlab", "check", subject, "--json", "--quiet", "--no-page", *options]
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=output,
        start_new_session=True,  # Ctrl-C is ours to answer, once
        preexec_fn=partial(sweep.die_with_parent, os.getpid()),  # noqa: PLW1509 - this process has one thread
    )
    return _Running(position, subject, process, output)


def _wait(process: subprocess.Popen[bytes]) -> None:
    try:
        process.wait(_TICK_S)  # a tick, not a limit: the others may end first
    except subprocess.TimeoutExpired:
        return


def _result(ended: _Running) -> Checked:
    with ended.output as output:
        output.seek(0)
        text = output.read()
    reports = json.loads(text)["reports"] if text else []
    return Checked(ended.subject, ended.process.returncode, load(reports[0]) if reports else None)


def _interrupt(running: Sequence[_Running]) -> None:
    """End the checks at once; their keepers see that and clear up."""
    for each in running:
        each.process.kill()
    for each in running:
        each.process.wait()
        each.output.close()
