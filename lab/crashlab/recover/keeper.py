"""The keeper: one small process that owns the temporary folder and every other process of the lab.

The main process may be anything (a test runner with threads) and may die at any moment, also by
SIGKILL. The keeper outlives it by a moment: it never runs the subject, waits for the end of the main
process (a closed socket, or its pidfd), ends every descendant, being their subreaper, and removes
the folder. That is why children need no parent-death signal of their own, which would cost each of
them a part of its time and would not reach their children.

The two fork servers are forked from here: it is a fresh interpreter with one thread.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import socket
import sys
import traceback
from dataclasses import dataclass
from typing import Any

from crashlab import directory
from crashlab.recover import guest, place, server, sweep, wire

LOG_NAME = "lab.log"
ROOT_NAME = "root"
_GONE = getattr(select, "POLLRDHUP", select.POLLHUP)


@dataclass(frozen=True)
class Arguments:
    """What the main process passes on the command line, as JSON; ``guest`` is the form of another user, or None.

    ``parent`` has forked this process where the main process has not started it.
    """

    control: int
    main: int
    temporary: str
    root: str
    guest: dict[str, Any] | None = None
    parent: int = 0


def main() -> None:
    """Keep until the main process ends or closes the connection; then leave nothing behind."""
    arguments = Arguments(**json.loads(sys.argv[3]))
    control = socket.socket(fileno=arguments.control)
    control.set_inheritable(False)
    server.reset_signals()
    os.umask(0o022)  # the same for recording and recovery, whatever the shell says
    # Not before: the lab's own modules may be kept compiled. From here on the subject's are read, not written.
    sys.dont_write_bytecode = True
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    sys.argv = ["crashlab"]
    sweep.become_subreaper()
    folder = ""
    started: list[int] = []
    try:
        if arguments.guest is not None:
            guest.enter(arguments.guest)
        folder = _make_folder(arguments)
        Keeper(control, arguments, folder, started).serve()
    except FileExistsError as error:
        _say(control, {"usage": f"the recorded place {arguments.root!r} is in use: {error}. Move it away, or wait."})
    except ConnectionError:
        pass  # the main process is gone
    except Exception:  # noqa: BLE001 - the lab's own failure: the main process quotes it
        _say(control, {"failed": traceback.format_exc()})
    finally:
        try:
            sweep.end_all(started)
        finally:
            remove(folder)


def _say(control: socket.socket, message: wire.Message) -> None:
    with contextlib.suppress(OSError):
        wire.send(control, message)


def _make_folder(arguments: Arguments) -> str:
    """The folder, with an empty root inside; at a recorded place where one is asked for."""
    if not arguments.root:
        # Not by tempfile: it loads random, which seeds itself anew in every child that is ever forked from here.
        folder = os.path.join(os.path.realpath(arguments.temporary), f"crashlab-{os.urandom(8).hex()}")
        os.mkdir(folder, 0o700)
        return folder
    folder = os.path.dirname(arguments.root)
    os.makedirs(os.path.dirname(folder), exist_ok=True)
    os.mkdir(folder, 0o700)
    return folder


def remove(folder: str) -> None:
    """Remove the folder and everything in it, whatever modes it has."""
    if folder:
        directory.clear(folder)
        os.rmdir(folder)


class Keeper:
    """Starts servers and workers for the main process, and watches it."""

    def __init__(self, control: socket.socket, arguments: Arguments, folder: str, started: list[int]) -> None:
        self._control = control
        self._folder = folder
        self._started = started
        self._root = os.path.join(folder, ROOT_NAME)
        self._poll = select.poll()
        self._poll.register(control, select.POLLIN | _GONE)
        if hasattr(os, "pidfd_open"):
            # A process that the main process forked may hold the socket open beyond its end; this one cannot lie.
            try:
                self._poll.register(os.pidfd_open(arguments.main), select.POLLIN)
            except ProcessLookupError:
                raise ConnectionResetError from None
        if os.getppid() != (arguments.parent or arguments.main):
            raise ConnectionResetError

    def serve(self) -> None:
        """Answer until the main process is gone."""
        place.make_root(self._root)
        log = os.open(os.path.join(self._folder, LOG_NAME), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        for standard in (1, 2):
            os.dup2(log, standard)
        os.environ.update(HOME=os.path.join(self._root, "home"), TMPDIR=os.path.join(self._root, "tmp"))
        os.environ["CRASHLAB_DIR"] = os.path.join(self._root, "dir")
        wire.send(self._control, {"folder": self._folder, "root": self._root})
        while True:
            ready = self._poll.poll()
            if any(descriptor != self._control.fileno() or event != select.POLLIN for descriptor, event in ready):
                return
            request = wire.receive(self._control)
            if request is None:
                return
            wire.send(self._control, self._answer(request))

    def _answer(self, request: wire.Message) -> wire.Message:
        if request["do"] == "status":
            try:
                pid, status = os.waitpid(request["pid"], 0)
            except ChildProcessError:
                return {"exit": None}
            return {"exit": os.waitstatus_to_exitcode(status) if pid else None}
        connection = wire.receive_socket(self._control)
        os.environ.update(server.fill_places(self._root, request["env"]))
        keeper = os.getpid()
        pid = os.fork()
        if pid == 0:
            self._control.close()
            if request["do"] == "server":
                server.run_server(connection, request["role"], self._root, keeper)
            sweep.die_with_parent(keeper)
            server.interpreter_worker(connection, request, self._root)
        connection.close()
        self._started.append(pid)
        return {"forked": pid}
