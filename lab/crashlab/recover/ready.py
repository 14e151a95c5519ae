"""Keepers that are forked instead of started: the user's side of the process in :mod:`crashlab.recover.standby`.

A main process and the one that asks for the proof may share one connection, and a main process may be killed while it
waits: each answer carries the number of its question.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from crashlab.errors import LabError
from crashlab.recover.wire import BOOTSTRAP

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

FIXED = {
    "PYTHONHASHSEED": "0",
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
}
"""In the environment of every keeper; the first must be there when the interpreter starts."""
LINE_BYTES = 1 << 20
"""No message is longer: a keeper's arguments are its module path and a few names."""
CAN_BE_READY = sys.platform == "linux"
"""Elsewhere there are no descriptors of processes, and no subreapers."""
_ANSWER_LIMIT_S = 60.0


class Forked:
    """A keeper that was forked so, with what :class:`subprocess.Popen` has of a process that was started."""

    returncode: int | None = None

    def __init__(self, pid: int, descriptor: int) -> None:
        self.pid, self._descriptor = pid, descriptor

    def wait(self, timeout: float | None = None) -> None:
        """Until it has ended. Raises subprocess.TimeoutExpired."""
        if self._descriptor < 0:
            return
        ready, _, _ = select.select([self._descriptor], [], [], timeout)
        if not ready:
            raise subprocess.TimeoutExpired(["keeper"], timeout or 0.0)
        os.close(self._descriptor)
        self._descriptor = -1

    def kill(self) -> None:
        """SIGKILL, if it has not ended."""
        if self._descriptor >= 0:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._descriptor, signal.SIGKILL)


class Ready:
    """The connection to such a process."""

    def __init__(self, descriptor: int) -> None:
        self._link = socket.socket(fileno=descriptor)
        self._link.set_inheritable(False)
        self._link.settimeout(_ANSWER_LIMIT_S)

    def fork(self, arguments: Mapping[str, Any], control: socket.socket, env: Mapping[str, str]) -> Forked:
        """A keeper with these arguments and this environment. Raises LabError where the process is gone."""
        request = {"arguments": dict(arguments), "env": dict(env), "sys_path": sys.path, "cwd": _here()}
        answer, descriptors = self._asked(request, control.fileno())
        return Forked(answer["pid"], descriptors[0])

    def sweep(self, grace_s: float) -> None:
        """Return when nothing that was forked so lives any more; it gets ``grace_s`` to end by itself."""
        self._asked({"sweep": grace_s})

    def close(self) -> None:
        """Give the connection back; the process ends when all have."""
        self._link.close()

    def _asked(self, request: dict[str, Any], *given: int) -> tuple[dict[str, Any], list[int]]:
        number = os.urandom(8).hex()
        try:
            socket.send_fds(self._link, [json.dumps({**request, "number": number}).encode()], list(given))
            while True:
                data, descriptors, _, _ = socket.recv_fds(self._link, LINE_BYTES, 1)
                answer = json.loads(data) if data else {"number": number, "failed": "it is gone"}
                if answer["number"] == number:
                    break
                for each in descriptors:
                    os.close(each)
        except OSError as error:
            text = f"the process that forks keepers does not answer: {error}"
            raise LabError(text) from error
        if "failed" in answer:
            text = f"the process that forks keepers: {answer['failed']}"
            raise LabError(text)
        return answer, descriptors


def _here() -> str:
    try:
        return os.getcwd()
    except FileNotFoundError:  # it was removed
        return "/"


def start(*, data_bytes: int) -> tuple[subprocess.Popen[bytes], socket.socket]:
    """Such a process, of which each keeper may have so much memory, and the connection to it, to be handed on.

    It ends when nobody holds the connection any more.
    """
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    form = json.dumps({"link": theirs.fileno(), "data_bytes": data_bytes})
    path = json.dumps([os.path.abspath(entry) for entry in sys.path])
    with theirs:
        process = subprocess.Popen(
            [sys.executable, *["-O"] * sys.flags.optimize, "-c", BOOTSTRAP, path, "crashlab.recover.standby", form],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**{name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL") if name in os.environ}, **FIXED},
            cwd="/",
            pass_fds=[theirs.fileno()],
            start_new_session=True,
        )
    return process, ours


_at_hand: list[Ready] = []


@contextlib.contextmanager
def at_hand(ready: Ready | None) -> Iterator[None]:
    """Every lab that is made inside has its keeper forked by ``ready``; started anew where it is None."""
    if ready is None:
        yield
        return
    _at_hand.append(ready)
    try:
        yield
    finally:
        _at_hand.pop()


def current() -> Ready | None:
    """The one that labs which are made now use."""
    return _at_hand[-1] if _at_hand else None
