"""The recorded run of a program that is watched from outside, by its system calls.

This process is the step: it starts the program under strace, decodes what strace tells, and passes the ops
on through the lab's pipe as the recorder in a Python process does. Of a Python subject the program is a
fresh interpreter that imports the subject and tells its events through a file, which strace sees as well;
what it answers comes back through a file in memory.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import signal
import subprocess
import sys
import tempfile
from typing import TYPE_CHECKING, Any, NoReturn

from crashlab import program
from crashlab import trace as t
from crashlab.errors import UsageError
from crashlab.lab import EffectRecord, Lab
from crashlab.live.errors import ErrorGate
from crashlab.live.far import GateKeeper
from crashlab.record.strace.watching import Program, tracees, watch
from crashlab.recover import sweep
from crashlab.recover.wire import BOOTSTRAP
from crashlab.subject import Commands

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from crashlab.record.strace.watching import Finished
    from crashlab.recover.child import Job, Pipe, Prepared


class _Teller:
    """Passes ops on; kills the program for real once the last ack that is wanted has been told.

    What the program does until the signal reaches it is told as well: it was done.
    """

    def __init__(self, pipe: Pipe, acks: int | None) -> None:
        self._pipe, self._acks = pipe, acks

    def __call__(self, op: t.Op) -> None:
        """One op."""
        self._pipe.op(op)
        if self._acks is not None and isinstance(op, t.Ack):
            self._acks -= 1
            if self._acks == 0:
                for tracer in sweep.descendants(os.getpid()):
                    for pid in tracees(tracer):
                        sweep.kill(pid)


def run(prepared: Prepared, job: Job) -> NoReturn:
    """Watch the run to its end, tell it, and end this process as the program ended."""
    events = program.events_path(prepared.root)
    with open(events, "xb") as file:
        file.writelines(program.history(_known(job)))
    try:
        if isinstance(prepared.subject, Commands):
            finished = _watched_command(prepared, job, prepared.subject, events)
        else:
            finished = _watched_python(prepared, job, events)
    except UsageError as error:
        prepared.pipe.line({"error": {"type": "UsageError", "message": str(error), "traceback": ""}})
        os._exit(1)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(events)
    if finished.code is None:
        program.die_by(signal.Signals[finished.signal])
    os._exit(finished.code or 0)


def _known(job: Job) -> list[EffectRecord]:
    """What was done to the outside world before a crash."""
    done = [op for form in job.effects if isinstance(op := t.op_from_json(form), t.Effect)]
    return Lab.history(done)


def _watched_command(prepared: Prepared, job: Job, subject: Commands, events: str) -> Finished:
    command = subject.start if job.step is None or subject.resume is None else subject.resume
    argv, teller = program.filled(command, prepared.root), _Teller(prepared.pipe, job.stop_after_acks)
    finished = _watched(prepared, job, argv, events, teller, streams={"stdin": subprocess.DEVNULL})
    if finished.code == 0:
        prepared.pipe.line({"result": {}})
    elif finished.code:
        told = f"{program.shown(command)} exited with {finished.code}"
        prepared.pipe.line({"exit": {"code": finished.code, "message": "", "told": told}})
    prepared.pipe.line({"watched": _told(finished), "modules": []})
    return finished


def _watched_python(prepared: Prepared, job: Job, events: str) -> Finished:
    """A fresh interpreter that imports the subject; what it answers is passed on when it has ended."""
    gate = _gate(job)
    keeper = None if gate is None else GateKeeper(gate)
    error = None if keeper is None else {**(job.error or {}), "descriptor": keeper.theirs.fileno()}
    inner, output = dataclasses.replace(job, traced=None, events=events, error=error), os.dup(1)
    request = {
        "subject": prepared.form,
        "job": vars(inner),
        "root": prepared.root,
        "stdout": output,
        "sys_path": sys.path,
    }
    argv = [sys.executable, "-c", BOOTSTRAP, json.dumps(sys.path), "crashlab.recover.child"]
    with (
        tempfile.TemporaryFile(dir=os.path.dirname(prepared.root)) as asked,
        open(os.memfd_create("answers"), "r+b") as answers,
    ):
        asked.write(json.dumps(request).encode())
        asked.seek(0)
        streams = {"stdin": asked, "stdout": answers}
        finished = _watched(
            prepared, job, argv, events, _Teller(prepared.pipe, None), streams=streams, pass_fds=[output], keeper=keeper
        )
        answers.seek(0)
        messages = [json.loads(line) for line in answers]
    for message in messages:
        if "watched" in message:
            message["watched"] = _told(finished)
        if "ready" not in message:
            prepared.pipe.line(message)
    if not any("watched" in message for message in messages):  # it died
        prepared.pipe.line({"watched": _told(finished), "modules": []})
    return finished


def _gate(job: Job) -> ErrorGate | None:
    return None if job.error is None else ErrorGate.of(job.error)


def _told(finished: Finished) -> dict[str, Any]:
    names = ("mapped", "late", "origins", "first")
    counts = [[pid, name, count] for (pid, name), count in (finished.counts or {}).items()]
    return dataclasses.asdict(finished.watched) | {name: getattr(finished, name) for name in names} | {"calls": counts}


def _watched(  # noqa: PLR0913 - what is run, how, and who hears of it
    prepared: Prepared,
    job: Job,
    argv: Sequence[str],
    events: str,
    teller: _Teller,
    *,
    streams: Mapping[str, Any],
    pass_fds: Sequence[int] = (),
    keeper: GateKeeper | None = None,
) -> Finished:
    traced = job.traced or {}
    call = traced.get("kill_call")
    run = Program(
        argv=argv,
        env=program.environment(events),
        streams=streams,
        pass_fds=[*pass_fds, *([] if keeper is None else [keeper.theirs.fileno()])],
        events_path=events,
        outside=job.outside,
        rebuilt=job.rebuilt,
        hold_us=traced.get("hold_us", 0),
        kill=None if call is None else (call[0], call[1]),
        striker=_gate(job) if keeper is None else keeper.gate,
        asked=None if keeper is None else (keeper.descriptor, keeper.serve),
    )
    numbers = {(device, inode): number for device, inode, number in job.numbers}
    return watch(run, root=prepared.root, numbers=numbers, emit=teller)
