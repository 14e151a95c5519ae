"""The process that is recorded in these tests: patches itself, then runs workloads that it is sent.

It stays out of pytest's own process, whose ``open`` must not be replaced. Requests and answers are
pickled, each after its length; both ends are ours.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import sys
import tempfile
import traceback
from dataclasses import dataclass, field
from os import rename as renamed_early  # from before the patches; a test calls it
from typing import TYPE_CHECKING, Any, BinaryIO, NoReturn

from crashlab import directory
from crashlab import trace as t
from crashlab.record.python import RECORDER, Watched

if TYPE_CHECKING:
    from collections.abc import Callable

    from crashlab.tree import Tree


def rename_by_default(source: str, target: str, *, rename: Callable[[str, str], None] = renamed_early) -> None:
    """Keeps the unpatched function in a default argument; a test uses it."""
    rename(source, target)


@dataclass
class Looking:
    """A gate that reads the real directory before every op, and kills where it is told to.

    ``kill`` is (n, bytes): die before op n where bytes is 0, else in the middle of op n.
    """

    root: str
    kill: tuple[int, int] | None = None
    look: bool = True
    seen: list[tuple[int, Tree]] = field(default_factory=list)

    def before(self, n: int) -> None:
        """Look, or die."""
        if self.kill == (n, 0):
            self.die()
        if self.look:
            self.seen.append((n, directory.read(self.root)))

    def cut_bytes(self, n: int, length: int) -> int | None:
        """Where to die inside of op ``n``."""
        if self.kill is None or self.kill[0] != n:
            return None
        assert self.kill[1] < length
        return self.kill[1]

    def die(self) -> NoReturn:
        """Die as a killed process dies."""
        os.kill(os.getpid(), signal.SIGKILL)
        signal.pause()
        sys.exit("never reached")


def run(request: dict[str, Any], root: str) -> dict[str, Any]:
    """Record one workload in this process."""
    base, numbers = directory.read_numbered(root)
    gate = Looking(root, request["kill"], look=request["look"])
    ops: list[t.Op] = []
    drop = request["drop"]

    def emit(op: t.Op) -> None:
        if drop == op.KIND and not any(each.KIND == "ack" for each in ops):
            ops.append(t.Ack(n=op.n))  # in its place, so that the numbers have no gap
        else:
            ops.append(op)
        if request["wire"] is not None:
            os.write(request["wire"], pickle.dumps(op))

    value, error = None, ""
    RECORDER.start(root=root, numbers=numbers, emit=emit, gate=gate, outside=request["outside"])
    try:
        value = request["workload"](os.path.join(root, "dir"), *request["arguments"])
    except BaseException:  # noqa: BLE001 - whatever it is, the test wants to see it
        error = traceback.format_exc()
    finally:
        watched = RECORDER.stop()
    trace = t.Trace(root=root, base=base, ops=tuple(ops), threads=watched.threads)
    last = directory.read(root)
    return {"trace": trace, "last": last, "watched": watched, "seen": gate.seen, "value": value, "error": error}


def run_killed(request: dict[str, Any], root: str) -> dict[str, Any]:
    """Record one workload in a child that kills itself for real."""
    base = directory.read(root)
    reading, request["wire"] = os.pipe()
    request["look"] = False
    child = os.fork()
    if child == 0:
        os.close(reading)
        run(request, root)
        os._exit(0)
    os.close(request["wire"])
    with open(reading, "rb") as wire:
        ops = []
        with contextlib.suppress(EOFError):
            while True:
                ops.append(pickle.load(wire))
    _, status = os.waitpid(child, 0)
    trace = t.Trace(root=root, base=base, ops=tuple(ops))
    watched = Watched((), (), 1)
    signalled = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    last = directory.read(root)
    return {"trace": trace, "last": last, "watched": watched, "seen": [], "value": signalled, "error": ""}


def prepare(root: str, before: Callable[[str], None] | None) -> None:
    """The three traced places, and what lies there before the run."""
    directory.clear(root)
    for name in ("dir", "home", "tmp"):
        os.mkdir(os.path.join(root, name))
    if before is not None:
        before(os.path.join(root, "dir"))


def serve(requests: BinaryIO, answers: BinaryIO) -> None:
    """Answer requests until the other side closes."""
    while header := requests.read(8):
        request = pickle.loads(requests.read(int.from_bytes(header, "big")))
        root = request["root"]
        prepare(root, request["before"])
        os.umask(0o022)
        tempfile.tempdir = os.path.join(root, "tmp")
        answer = pickle.dumps((run if request["kill"] is None else run_killed)(request | {"wire": None}, root))
        answers.write(len(answer).to_bytes(8, "big") + answer)
        answers.flush()


if __name__ == "__main__":
    to_parent = os.dup(1)
    os.dup2(2, 1)  # what a workload prints is no answer
    RECORDER.install()
    with open(to_parent, "wb") as out:
        serve(sys.stdin.buffer, out)
