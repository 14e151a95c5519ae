"""The process around one submission: it starts the judge, ends it at the time limit, and leaves nothing behind.

::

    crashcourse grade ── warden ── judge ── keeper ── … ── the submission

The warden is the subreaper of all that follows, and knows nothing of the submission but its bytes. It tells one
line, the two results, once no descendant lives and the folder is gone. Should the command that started it die, its
input ends, and it ends everything in the same way.
"""

from __future__ import annotations

import dataclasses
import gc
import importlib
import json
import os
import re
import resource
import select
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from crashcourse import catalog, folders
from crashcourse.grading import housing
from crashcourse.judging import QUICK
from crashcourse.marking import mark, unjudged
from crashcourse.result import JUDGE_FAILED
from crashlab.errors import Disturbed, UsageError
from crashlab.recover import guest, ready, sweep

if TYPE_CHECKING:
    from crashcourse.catalog import Exercise
    from crashcourse.result import Result

KEEPER_LIMIT_S = 10.0
"""The lab's keeper, whose judge was ended, gets so long to end what it keeps."""
LATE = (
    "crashcourse.unwatched",
    "crashlab.barrier_trials",
    "crashlab.error_trial",
    "crashlab.explain_damage",
    "crashlab.explain_error",
    "crashlab.explain_loss",
    "crashlab.explain_race",
    "crashlab.nested_trial",
    "crashlab.race_trial",
    "crashlab.recover.culprit",
)
"""What judges import when they need it, imported before any is forked."""
LOST = 12
"""After so many violations under one fault a case that sees no other fault is lost, and its other states are left."""
LOG = "judge.log"
_SHOWN = 2_000
_READ_BYTES = 1 << 16


def main() -> None:
    """Judge what comes as JSON lines on standard input, and answer each with one on standard output."""
    guest.dumpable(0)
    sweep.become_subreaper()
    link = int(sys.argv[3])
    forker = ready.Ready(link) if link >= 0 else None
    os.chdir("/")  # nothing of the folder from which the command was called is found by a later import
    for name in LATE:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()
    while line := sys.stdin.buffer.readline():
        answer = _answer(json.loads(line), forker)
        if not answer:
            return
        sys.stdout.write(answer)
        sys.stdout.flush()


def _answer(request: dict[str, Any], forker: ready.Ready | None) -> str:
    """The answer, one line, when nothing of the submission is left; "" where whoever asked is gone."""
    base = housing.base(Path(request["folder"]), request["isolation"], request["hidden"])
    try:
        with guest.housed(base.guest), ready.at_hand(forker):
            return _judged(request, base)
    finally:
        try:
            if forker is not None:
                forker.sweep(KEEPER_LIMIT_S)
            sweep.end_all()
        finally:
            base.remove()


def _judged(request: dict[str, Any], base: housing.Base) -> str:
    """The answer; nothing where whoever asked is gone."""
    exercise, data = catalog.find(request["exercise"]), bytes.fromhex(request["data"])
    reader, writer = os.pipe()
    warden = os.getpid()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        sweep.die_with_parent(warden)
        _judge(exercise, data, request, base, writer)
    os.close(writer)
    try:
        told = _wait(reader, request["limit_s"])
    except TimeoutError:
        text = f"not judged: it did not end within {request['limit_s']:g} s"
        return _line(unjudged(exercise, data, request["seed"], message=text))
    finally:
        status = _end(pid)
    if told is None or told.endswith(b"\n"):
        return (told or b"").decode()
    error = f"the judge ended with {_how(status)} before its answer. {_said(base)}".strip()
    return _line(unjudged(exercise, data, request["seed"], message=JUDGE_FAILED, error=error))


def _line(result: Result) -> str:
    return json.dumps({"whole": result.to_json(), "public": result.public().to_json()}) + "\n"


def _placeless(line: str, base: housing.Base) -> str:
    """Without the names of temporary folders, which are others every time, and nobody's business."""
    below = r"(/crashcourse-[0-9a-f]{16}|/tmp/crashlab-[0-9a-f]{16}(/root(/dir)?)?)?/?"
    return re.sub(re.escape(str(base.folder)) + below, "", line)


def _wait(reader: int, limit_s: float) -> bytes | None:
    """All that the judge tells; None where whoever asked is gone. Raises TimeoutError."""
    parts: list[bytes] = []
    deadline = time.monotonic() + limit_s
    poll = select.poll()
    poll.register(reader, select.POLLIN)
    poll.register(0, select.POLLIN)
    while (left_s := deadline - time.monotonic()) > 0:
        for descriptor, _ in poll.poll(left_s * 1000):
            if descriptor == 0:
                return None  # one line was promised; what comes now is the end
            part = os.read(reader, _READ_BYTES)
            if not part:
                return b"".join(parts)
            parts.append(part)
    raise TimeoutError


def _end(pid: int) -> int:
    """End the judge, if it lives, give its keeper the time to end the rest; the judge's wait status."""
    sweep.kill(pid)
    status = os.waitpid(pid, 0)[1]
    sweep.let_end(grace_s=KEEPER_LIMIT_S)
    return status


def _how(status: int) -> str:
    code = os.waitstatus_to_exitcode(status)
    return f"exit code {code}" if code >= 0 else signal.Signals(-code).name


def _said(base: housing.Base) -> str:
    text = (base.folder / LOG).read_text(encoding="utf-8", errors="replace")
    return f"It printed: {text[-_SHOWN:].strip()}" if text.strip() else ""


def _judge(exercise: Exercise, data: bytes, request: dict[str, Any], base: housing.Base, writer: int) -> NoReturn:
    """The judge's process: trusted, and it never loads what it judges."""
    code = 1
    try:
        log = os.open(base.folder / LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        for standard, descriptor in ((0, os.open(os.devnull, os.O_RDONLY)), (1, log), (2, log)):
            os.dup2(descriptor, standard)
        resource.setrlimit(resource.RLIMIT_DATA, (request["data_bytes"], resource.RLIM_INFINITY))
        tempfile.tempdir, folders.guarded = str(base.folder), False
        file = base.folder / exercise.file
        file.write_bytes(data)
        result = _marked(exercise, file, request, base)
        with open(writer, "w", encoding="utf-8") as answer:
            answer.write(_placeless(_line(result), base))
        code = 0
    except BaseException:  # noqa: BLE001 - to the log, which the warden quotes
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def _marked(exercise: Exercise, file: Path, request: dict[str, Any], base: housing.Base) -> Result:
    cases = None if request["cases"] is None else frozenset(request["cases"])
    try:
        # However busy the machine is, states are not left out: the limit of the whole is the warden's.
        budget = dataclasses.replace(QUICK, time_s=request["limit_s"], lost=LOST)
        return mark(exercise, file, private_seed=request["seed"], out=base.folder / "runs", cases=cases, budget=budget)
    except UsageError as error:
        return unjudged(exercise, file.read_bytes(), request["seed"], message=f"not judged: {error}")
    except Disturbed as error:
        if base.guest is None:
            raise  # as the same user anything may have ended it
        text = f"not judged: {error} Nobody else runs as its user: the submission has disturbed it."
        return unjudged(exercise, file.read_bytes(), request["seed"], message=text)
    except MemoryError:
        text = "not judged: what it wrote does not fit into the judge's memory"
        return unjudged(exercise, file.read_bytes(), request["seed"], message=text)
