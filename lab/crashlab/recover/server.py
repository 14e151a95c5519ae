"""A fork server: one process with one thread that imports the subject once and forks workers.

There are two of them, forked from the keeper before anything of the subject is known. The one for
recording patches Python's file functions first and then imports the subject; the one for recovery
never loads these patches, and imports beforehand what the recorded run imported late.

A server whose subject starts threads while it is imported must not fork: a fork copies one thread,
and whatever lock another held stays locked for ever. It says so, and the steps run in fresh
interpreters instead (:func:`interpreter_launch`).
"""

from __future__ import annotations

import importlib
import json
import marshal
import os
import signal
import sys
import threading
import traceback
from typing import TYPE_CHECKING, Any, NoReturn

from crashlab import trace as t
from crashlab import workload
from crashlab.errors import UsageError
from crashlab.recover import child, place, sweep, travel, wire, worker
from crashlab.recover.wire import BOOTSTRAP
from crashlab.subject import Commands, Log, Store

if TYPE_CHECKING:
    import socket
    from collections.abc import Mapping

    from crashlab.recover.nursery import Launch
    from crashlab.recover.watch import Output
    from crashlab.recover.wire import Message
    from crashlab.subject import AnySubject

RECORD, RECOVER = "record", "recover"
LIVE = ("crashlab.live.erring", "crashlab.live.errors", "crashlab.live.kill", "crashlab.live.race")
"""What the processes need in which a fault happens: hundreds of these are forked, so none should load it itself."""


def thread_count() -> int:
    """Threads of this process, those of C libraries included where the system tells."""
    try:
        return len(os.listdir("/proc/self/task"))
    except OSError:
        return threading.active_count()


def fill_places(root: str, env: Mapping[str, str]) -> dict[str, str]:
    """``env`` with ``{dir}``, ``{tmp}`` and ``{home}`` filled in."""
    filled = {}
    for name, value in env.items():
        for each in place.PLACES:
            value = value.replace(f"{{{each}}}", os.path.join(root, each))  # noqa: PLW2901 - filled step by step
        filled[name] = value
    return filled


class Server:
    """Answers the main process: import, prepare, fork."""

    def __init__(self, control: socket.socket, role: str, root: str) -> None:
        self._control = control
        self._role = role
        self._root = root
        self._subject: AnySubject | None = None
        self._form: Mapping[str, Any] = {}
        self._trace: t.Trace | None = None
        self._expected: Any = None

    def serve(self) -> None:
        """Answer until the main process closes the connection."""
        while (request := wire.receive(self._control)) is not None:
            match request["do"]:
                case "import":
                    answer = self._import(request)
                case "prepare":
                    answer = self._prepare(request)
                case _:
                    answer = self._fork(watches=request["watches"])
            wire.send(self._control, answer)

    def _import(self, request: Message) -> Message:
        if self._role == RECORD:
            from crashlab.record.python import RECORDER  # noqa: PLC0415 - only this role loads the patches

            RECORDER.install()
            for name in LIVE:
                importlib.import_module(name)
        try:
            self._form = request["subject"]
            self._subject = travel.unpack(self._form)
            description = workload.describe(self._subject)
        except UsageError as error:
            return {"usage": str(error)}
        os.environ.update(fill_places(self._root, description["env"]))
        return {"description": description, "threads": thread_count()}

    def _prepare(self, request: Message) -> Message:
        self._trace, self._expected = t.Trace.from_json(request["trace"]), request["expected"]
        for name in request["modules"]:
            try:
                importlib.import_module(name)
            except BaseException:  # noqa: BLE001, S112 - only a head start: the recovery itself meets the error, if any
                continue
        return {"threads": thread_count()}

    def _fork(self, *, watches: bool) -> Message:
        """A worker; one that watches programs from outside has the code for it before each run is forked."""
        if watches:
            from crashlab.recover import traced  # noqa: F401, PLC0415 - most subjects need none of it

        connection = wire.receive_socket(self._control)
        for stream in (sys.stdout, sys.stderr):
            stream.flush()  # else what the import printed comes out of every child again
        parent = os.getpid()
        pid = os.fork()
        if pid == 0:
            sweep.die_with_parent(parent)
            self._control.close()
            self._work(connection)
        connection.close()
        return {"forked": pid}

    def _work(self, connection: socket.socket) -> NoReturn:
        subject = self._subject
        assert subject is not None, "the main process asks for a fork after an import"

        def launch_for(writing: int, _output: Output, link: socket.socket) -> Launch:
            prepared = child.Prepared(subject, self._root, writing, self._form)
            launch = forking_launch(prepared, link)
            if not isinstance(subject, Commands) or not sweep.CAN_SWEEP:
                return launch
            from crashlab.recover import direct  # noqa: PLC0415 - only these subjects need it

            return direct.launch_for(prepared, launch)

        setting = worker.Setting(
            root=self._root,
            launch_for=launch_for,
            trace=self._trace,
            expected=self._expected,
            tells=not isinstance(subject, (Store, Log)),
        )
        worker.work(connection, setting)


def run_server(control: socket.socket, role: str, root: str, parent: int) -> NoReturn:
    """Be a server in this process, which the keeper has just forked, until the end."""
    code = 1
    try:
        sweep.die_with_parent(parent)
        Server(control, role, root).serve()
        code = 0
    except ConnectionError:
        code = 0  # the main process is gone; the keeper ends everything
    except BaseException:  # noqa: BLE001 - to the log, which the main process quotes
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def interpreter_worker(connection: socket.socket, request: Mapping[str, Any], root: str) -> NoReturn:
    """Be a worker whose steps are fresh interpreters; nothing of the subject is ever imported here."""
    trace = None if request["trace"] is None else t.Trace.from_json(request["trace"])
    os.environ.update(fill_places(root, request["env"]))

    def launch_for(writing: int, output: Output, _link: socket.socket) -> Launch:
        return interpreter_launch(request["subject"], root, writing, output)

    setting = worker.Setting(
        root=root,
        launch_for=launch_for,
        trace=trace,
        expected=request["expected"],
        import_limit_s=request["import_limit_s"],
    )
    worker.work(connection, setting)


def forking_launch(prepared: child.Prepared, link: socket.socket) -> Launch:
    """Steps as forks of a process that has imported the subject."""
    # The import may have asked the system to reap children by itself; then nobody could tell how one ended.
    handler = signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    raised: set[int] = set()

    def launch(data: bytes) -> tuple[int, bytes]:
        pid = os.fork()
        if pid == 0:
            os.setsid()
            link.close()  # else the nursery's death could not be seen while a child of it lives
            if handler is not signal.SIG_DFL:
                signal.signal(signal.SIGCHLD, handler)
            child.run_forked(prepared, data)
        if not sweep.CAN_SWEEP:
            prepared.pipe.line({"pid": pid})
        status = os.waitpid(pid, 0)[1]
        if status and not raised:  # where one has raised others will
            child.keep_sources()
        raised.update({status} - {0})
        return status, b""

    return launch


def interpreter_launch(subject: Mapping[str, Any], root: str, writing: int, output: Output) -> Launch:
    """Steps as fresh interpreters that import the subject themselves."""

    def launch(data: bytes) -> tuple[int, bytes]:
        job = marshal.loads(data)  # noqa: S302 - from the lab's own worker
        request = {"subject": subject, "job": job, "root": root, "stdout": output.writers[0], "sys_path": sys.path}
        # The child reads its standard input whole before it touches the subject, so this never blocks for long.
        import subprocess  # noqa: PLC0415 - every process forked from a server would carry it

        process = subprocess.Popen(
            [sys.executable, "-c", BOOTSTRAP, json.dumps(sys.path), "crashlab.recover.child"],
            stdin=subprocess.PIPE,
            stdout=writing,
            stderr=output.writers[1],
            pass_fds=[output.writers[0]],
            start_new_session=True,
        )
        assert process.stdin is not None
        try:
            process.stdin.write(json.dumps(request).encode())
            process.stdin.close()
        except BrokenPipeError:
            process.kill()  # it died before it read: its end says how
        process.returncode = 0  # reaped here, not by this object
        return os.waitpid(process.pid, 0)[1], b""

    return launch


def reset_signals() -> None:
    """Handlers and mask as in a program that was started from a shell, whatever the test runner did."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
