"""One step of the subject in a process of its own: the recorded run, or one step of a recovery.

Two ways in. Isolated: a worker forked this process, and everything is in memory. Interpreter:
``python -m crashlab.recover.child`` reads the job as JSON from standard input and imports the subject
itself; that way uses only what every system has.

The answer leaves as JSON lines through a pipe: each op or event at once, as ``{"op": …}``, so that a
death keeps those before it; then ``{"result": …}``, ``{"error": …}`` or ``{"exit": …}``. After it the
process ends as an interpreter does: threads that are not daemons are waited for (one that never ends
makes the step a hang), ``atexit`` functions run, output is flushed. Only the destruction of modules
is left out: the process ends by ``os._exit``.
"""

from __future__ import annotations

import atexit
import errno
import json
import linecache
import marshal
import os
import sys
import threading
import time
import traceback
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from crashlab import trace as t
from crashlab import workload
from crashlab.lab import Lab
from crashlab.live.kill import KillGate
from crashlab.recover import sweep, travel, wire
from crashlab.subject import Commands, Log, Store

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from crashlab.lab import Sink
    from crashlab.live.errors import ErrorGate
    from crashlab.live.on_disk import DiskGate
    from crashlab.live.race import RaceGate
    from crashlab.subject import AnySubject

TEXT_LIMIT_BYTES = 1 << 16
_to_json = json.JSONEncoder(separators=(",", ":")).encode
JUDGED = frozenset({t.Effect, t.Unknown})
SOURCES_AT_MOST = 64
"""Of so many modules the sources are kept."""
LAB_EXIT_CODE = 70  # EX_SOFTWARE: the process could not give its answer


@dataclass(frozen=True, kw_only=True)
class Job:
    """What one process is to do, in forms that JSON and marshal have.

    ``step`` is None for the recorded run, ``watched`` has a recovery recorded too, ``kill`` is
    ``[op, byte]`` or None, ``error`` the form of an :class:`~crashlab.live.errors.ErrorGate` or None, and
    ``disk`` the control socket of a real disk below the root and a seed, or None; ``effects`` are those of
    the outside world's record so far. ``traced`` watches from outside, by the system calls, as
    :meth:`crashlab.recover.host.Host.record` takes it, but for the files of ``rebuilt``. A Python run that is
    watched so tells its ``events`` through that file. ``warm`` is the descriptor over which many recoveries are
    asked of one process. ``race`` makes it one of two owners, as :class:`crashlab.live.race.Owner` has it.
    """

    step: dict[str, Any] | None = None
    watched: bool = False
    effects: Sequence[dict[str, Any]] = ()
    acked: Sequence[Any] = ()
    expected: Any = None
    kill: Sequence[int] | None = None
    disk: tuple[str, int] | None = None
    error: dict[str, Any] | None = None
    stop_after_acks: int | None = None
    numbers: Sequence[Sequence[int]] = ()
    outside: Sequence[str] = ()
    traced: Mapping[str, Any] | None = None
    rebuilt: Sequence[str] = ()
    events: str = ""
    warm: int | None = None
    race: Mapping[str, Any] | None = None


class Prepared:
    """What every process of one nursery needs, made before the fork: each page touched after it is copied."""

    def __init__(self, subject: AnySubject, root: str, writing: int, form: Mapping[str, Any]) -> None:
        self.subject, self.form = subject, form
        self.root = root
        self.directory = Path(root, "dir")
        hash(self.directory)  # a path makes its parts and text when first asked
        self.pipe = Pipe(writing)


class Pipe:
    """The way out: whole lines, each written before the call returns."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self._identity = os.fstat(descriptor)
        self._lock = threading.Lock()
        self._n = 0

    def line(self, message: dict[str, Any]) -> None:
        """Write one line. Raises OSError where the subject has closed the descriptor."""
        self.write(_to_json(message))

    def write(self, text: str) -> None:
        """Write ``text`` as one line.

        A program that closes all descriptors may have opened a file of its own under this number: the
        lab must not write into that.
        """
        if not os.path.samestat(os.fstat(self.descriptor), self._identity):
            reason = "the program closed the descriptor through which the lab gets its answer"
            raise OSError(errno.EBADF, reason)
        data = memoryview(text.encode() + b"\n")
        while data:
            data = data[os.write(self.descriptor, data) :]

    def op(self, op: t.Op) -> None:
        """One op of a recording. The recorder calls this under its lock."""
        self.line({"op": t.op_to_json(op)})

    def event(self, event_type: type[t.Op], **fields: Any) -> None:
        """One event of a recovery, numbered here: a sink for :class:`crashlab.lab.Lab`.

        What a recovery acks and where it saves is not judged, and a long one does so hundreds of times.
        """
        if event_type not in JUDGED:
            return
        with self._lock:
            self._n += 1
            self.op(event_type(n=self._n, time_ns=time.time_ns(), **fields))


def run(prepared: Prepared, job: Job) -> NoReturn:
    """Do the job, tell the end of it, and end this process as an interpreter would."""
    if job.warm is not None:
        from crashlab.recover import reused  # noqa: PLC0415 - loaded by the worker that asks for it

        reused.serve(prepared, job.warm)
    if job.traced is not None:
        from crashlab.recover import traced  # noqa: PLC0415 - only these runs need it

        traced.run(prepared, job)
    if job.step is None or job.watched:
        _run_recorded(prepared, job)
    step, pipe = job.step, prepared.pipe
    lab = lab_of(prepared, job, pipe.event)
    code = answer(pipe, lambda: _recovered(prepared, lab, step))
    if code < 0:
        from crashlab import program  # noqa: PLC0415 - only a program ends so

        program.die_by(-code)
    _finish()
    os._exit(code)


def lab_of(prepared: Prepared, job: Job, sink: Sink) -> Lab:
    """What the subject receives, with all that happened outside before."""
    done = [op for form in job.effects if isinstance(op := t.op_from_json(form), t.Effect)]
    return Lab(prepared.directory, sink, Lab.history(done), list(job.acked), job.expected)


def _recovered(prepared: Prepared, lab: Lab, step: dict[str, Any]) -> dict[str, Any]:
    """One step of the recovery; with ``reads`` its reads fail from that one on, 0 only counts them."""
    if isinstance(prepared.subject, Commands):
        from crashlab import program  # noqa: PLC0415 - only these subjects need it

        sweep.become_subreaper()
        program.keep_descriptors()
        return workload.recover(prepared.subject, lab, step)
    if "reads" not in step:
        return workload.recover(prepared.subject, lab, step)
    from crashlab.live import reads  # noqa: PLC0415 - only these steps need it

    met = reads.install(prepared.root, step["reads"])
    return workload.recover(met.during(prepared.subject), lab, step) | {"reads": met.count, "failed": met.failed}


def run_forked(prepared: Prepared, data: bytes) -> NoReturn:
    """:func:`run` in a process that was just forked; nothing may ever return into its parent's code."""
    try:
        run(prepared, Job(**marshal.loads(data)))  # noqa: S302 - from the lab's own worker
    except BaseException:
        sys.excepthook(*sys.exc_info())
        raise
    finally:
        os._exit(LAB_EXIT_CODE)


def _run_recorded(prepared: Prepared, job: Job) -> NoReturn:
    if job.events:  # the recorder is not even loaded there: a program that looks for it sees none
        _run_told(prepared, job)
    from crashlab.record.python import RECORDER  # noqa: PLC0415 - the recovering side never loads the patches

    pipe = prepared.pipe
    gate: KillGate | DiskGate | ErrorGate | RaceGate | None = None if job.kill is None else KillGate(*job.kill)
    emit: Callable[[t.Op], None] = pipe.op
    if job.disk is not None:
        from crashlab.live import on_disk  # noqa: PLC0415 - only these runs need it

        socket, seed = job.disk
        gate = on_disk.DiskGate(socket, seed, prepared.root, pipe.op)
        emit = gate.told
    sink = RECORDER.event if job.stop_after_acks is None else workload.stop_after(RECORDER.event, job.stop_after_acks)
    lab = lab_of(prepared, job, sink)
    act: Callable[[], dict[str, Any]] = partial(_ran, prepared, job, lab, sink)
    if job.error is not None:
        from crashlab.live import erring, errors  # noqa: PLC0415 - only these runs need it

        failing, acked = errors.ErrorGate.of(job.error), list[Any]()
        gate, sink = failing, erring.acking(sink, acked)
        lab = Lab(prepared.directory, sink, _acked=acked, _expected=job.expected)
        assert not isinstance(prepared.subject, Commands), "its calls fail in Python code only"
        act = partial(erring.record, prepared.subject, lab, sink, failing, count=lambda: RECORDER.count)
    if job.race is not None:
        gate, emit, act = _owner(prepared, job)
    numbers = {(device, inode): number for device, inode, number in job.numbers}
    modules = frozenset(sys.modules)
    RECORDER.start(root=prepared.root, numbers=numbers, emit=emit, gate=gate, outside=job.outside)
    code = answer(pipe, act)
    _finish()
    if gate is not None:
        gate.end()
    watched = RECORDER.stop()
    told = {"outside_writes": watched.outside_writes, "unseen": watched.unseen, "threads": watched.threads}
    pipe.line({"watched": told, "modules": travel.found_again(sys.modules.keys() - modules)})
    os._exit(code)


def _owner(prepared: Prepared, job: Job) -> tuple[RaceGate, Callable[[t.Op], None], Callable[[], dict[str, Any]]]:
    """The gate of one of two owners, where its ops are told, and what it does."""
    from crashlab.live import race  # noqa: PLC0415 - only these runs need it
    from crashlab.record.python import RECORDER  # noqa: PLC0415 - the recovering side never loads the patches

    sweep.die_with_parent(os.getppid())  # it may be frozen just then, and would stay so for ever
    subject, pipe = prepared.subject, prepared.pipe
    assert job.race is not None
    assert not isinstance(subject, Commands), "its ops are seen from outside only"
    owner = race.Owner(job.race, prepared.directory, RECORDER, pipe.line, stop_after_acks=job.stop_after_acks)

    def emit(op: t.Op) -> None:
        pipe.op(op)
        owner.world.op(op)

    return owner.gate, emit, partial(owner.act, subject)


def _ran(prepared: Prepared, job: Job, lab: Lab, sink: Sink) -> dict[str, Any]:
    """The recorded run, or the step of the recovery that is recorded."""
    if job.step is not None and job.step["step"] in (workload.RUN, workload.GO_ON):
        assert isinstance(prepared.subject, (Store, Log)), "only these have values, and so crashes between them"
        return workload.run_on(prepared.subject, lab, sink, job.step)
    if job.step is not None:
        return workload.recover(prepared.subject, lab, job.step)
    assert not isinstance(prepared.subject, Commands), "a command is watched from outside"
    return workload.record(prepared.subject, lab, sink)


def _run_told(prepared: Prepared, job: Job) -> NoReturn:
    """The recorded run where another process watches: this one only writes down its events."""
    from crashlab.events import EventLines  # noqa: PLC0415 - only these runs need it

    lines = EventLines(job.events)
    sink: Sink = lines if job.stop_after_acks is None else workload.stop_after(lines, job.stop_after_acks)
    lab, modules = lab_of(prepared, job, sink), frozenset(sys.modules)
    act: Callable[[], dict[str, Any]] = partial(_ran, prepared, job, lab, sink)
    if job.error is not None:
        from crashlab.live import erring, far  # noqa: PLC0415 - only these runs need it

        gate, acked = far.FarGate(job.error["descriptor"], job.error["mode"]), list[Any]()
        sink = erring.acking(sink, acked)
        lab = Lab(prepared.directory, sink, _acked=acked, _expected=job.expected)
        assert not isinstance(prepared.subject, Commands), "a command is no Python code"
        act = partial(erring.record, prepared.subject, lab, sink, gate, count=gate.count)
    code = answer(prepared.pipe, act)
    _finish()
    prepared.pipe.line({"watched": {}, "modules": travel.found_again(sys.modules.keys() - modules)})
    os._exit(code)


def answer(pipe: Pipe, act: Callable[[], dict[str, Any]]) -> int:
    """Run ``act``, write its one line, and return the exit code that the process will have.

    A negative one is the signal that ended a program, of which there is nothing to write.
    """
    try:
        value = act()
    except SystemExit as error:
        return _exit(pipe, error)
    except BaseException as error:  # noqa: BLE001 - whatever the subject raises is its answer, and is judged
        return _error(pipe, error)
    try:
        line = _to_json(value)
    except (TypeError, ValueError) as error:
        return _error(pipe, error)
    if len(line) > wire.LINE_LIMIT_BYTES:
        limit = wire.LINE_LIMIT_BYTES >> 20
        text = (
            f"the result is too large: {len(line) >> 20} MiB as JSON, limit {limit} MiB. Pass view=… to compare a part."
        )
        pipe.line({"error": {"type": "UsageError", "message": text, "traceback": ""}})
        return 1
    pipe.write(f'{{"result":{line}}}')
    return 0


def _exit(pipe: Pipe, error: SystemExit) -> int:
    """What Python makes of SystemExit: a number is the exit code, a text goes to standard error."""
    told = getattr(error, "told", "")  # of a command that ended so
    if told and isinstance(error.code, int) and error.code < 0:
        return error.code
    code = 0 if error.code is None else error.code if isinstance(error.code, int) else 1
    message = "" if error.code is None or isinstance(error.code, int) else str(error.code)
    if message:
        sys.stderr.write(f"{message}\n")
    pipe.line({"exit": {"code": code & 0xFF, "message": message[:TEXT_LIMIT_BYTES], "told": told}})
    return code & 0xFF


def _error(pipe: Pipe, error: BaseException) -> int:
    text, subjects = _tracebacks(error)
    pipe.line({"error": {"type": type(error).__name__, "message": message_of(error), "traceback": subjects}})
    sys.stderr.write(text[-TEXT_LIMIT_BYTES:])
    return 1


def message_of(error: BaseException) -> str:
    """Its text, of which its own class may say anything."""
    try:
        return str(error)[:TEXT_LIMIT_BYTES]
    except Exception as second:  # noqa: BLE001 - the subject's own __str__ may raise anything
        return f"(its text cannot be shown: {type(second).__name__})"


def _tracebacks(error: BaseException) -> tuple[str, str]:
    """The traceback, and that from the subject's first frame on: the lab's own frames tell the reader nothing."""
    told = traceback.TracebackException.from_exception(error, compact=True)
    whole, lab = "".join(told.format()), os.path.dirname(os.path.dirname(__file__)) + os.sep
    first = next((number for number, frame in enumerate(told.stack) if not frame.filename.startswith(lab)), 0)
    if not first:
        return whole, whole[-TEXT_LIMIT_BYTES:]
    del told.stack[:first]
    return whole, "".join(told.format())[-TEXT_LIMIT_BYTES:]


def keep_sources() -> None:
    """Read what tracebacks quote: the subject's modules, the lab's two between them and here, those that read JSON.

    In a process whose forks raise, each of them would read it anew: measured, a third of what such a fork takes.
    """
    lab, library = os.path.dirname(os.path.dirname(__file__)) + os.sep, os.path.dirname(os.__file__) + os.sep
    files = [file for module in list(sys.modules.values()) if isinstance(file := getattr(module, "__file__", ""), str)]
    own = [file for file in files if file.endswith(".py") and not file.startswith((lab, library))]
    for file in (__file__, workload.__file__, json.__file__, json.decoder.__file__, *own[:SOURCES_AT_MOST]):
        linecache.getlines(file)


def _finish() -> None:
    """End as an interpreter does, up to the destruction of modules."""
    threading._shutdown()  # type: ignore[attr-defined]  # noqa: SLF001 - what Python calls at its end; no public name
    atexit._run_exitfuncs()  # noqa: SLF001 - as above
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):  # the subject closed or replaced it
            continue


def main() -> NoReturn:
    """Read a job from standard input and do it: the way for systems and subjects that cannot be forked."""
    request = json.loads(sys.stdin.buffer.read())
    pipe = Pipe(os.dup(1))
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    output = request["stdout"]
    os.dup2(output if isinstance(output, int) else os.open(output, os.O_WRONLY | os.O_APPEND), 1)
    sys.path[:] = request["sys_path"]
    job = Job(**request["job"])
    if (job.step is None or job.watched) and not job.events:
        from crashlab.record.python import RECORDER  # noqa: PLC0415 - the recovering side never loads the patches

        RECORDER.install()
    subject = travel.unpack(request["subject"])
    prepared = Prepared(subject, request["root"], pipe.descriptor, request["subject"])
    pipe.line({"ready": True})
    run(prepared, job)


if __name__ == "__main__":
    main()
