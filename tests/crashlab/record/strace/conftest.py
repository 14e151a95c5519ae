"""Programs under strace: run one in an empty root, and hold its trace against the real directory."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from crashlab import directory
from crashlab import trace as t
from crashlab.errors import ToolMissing
from crashlab.record.proof import replay_proof
from crashlab.record.strace.tool import available
from crashlab.record.strace.watching import Finished, Program, watch

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from crashlab.tree import Tree


@dataclass
class Recorded:
    """One recorded run of a program."""

    trace: t.Trace
    last: Tree
    finished: Finished
    root: Path

    @property
    def ops(self) -> list[tuple[Any, ...]]:
        """Each op as its kind and what it is about, without numbers and times."""
        return [shown(op) for op in self.trace.ops]

    @property
    def unseen(self) -> tuple[str, ...]:
        """What the recorder says that it could not see."""
        return self.finished.watched.unseen

    def prove(self) -> Recorded:
        """Assert that the replayed trace is the real directory, and that nothing was unseen."""
        assert replay_proof(self.trace, self.last, ()) == ()
        assert self.unseen == ()
        return self


def shown(op: t.Op) -> tuple[Any, ...]:
    """The parts of an op that tests compare: all but number, time, thread and source line."""
    left_out = ("op", "n", "time_ns", "thread", "at", "inode")
    return (
        op.KIND,
        *(value for key, value in t.op_to_json(op).items() if key not in left_out and key != "data"),
        *([op.data] if isinstance(op, t.Write) else []),
    )


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., Recorded]:
    """Watch ``python -c code`` (or any argv) in ``root/dir``; skip, visibly, where strace is missing."""
    try:
        tool = available()
    except ToolMissing as missing:
        pytest.skip(str(missing))
    tries = iter(range(1000))

    def record(
        program: str | Sequence[str], *, before: Callable[[str], None] | None = None, **options: Any
    ) -> Recorded:
        root = tmp_path / f"root{next(tries)}"
        (root / "dir").mkdir(parents=True)
        if before is not None:
            before(str(root / "dir"))
        base, numbers = directory.read_numbered(root)
        argv = [sys.executable, "-S", "-E", "-c", PRELUDE + program] if isinstance(program, str) else list(program)
        ops: list[t.Op] = []
        emit = options.pop("emit", ops.append)
        wanted = Program(argv=argv, cwd=str(root / "dir"), **options)
        finished = watch(wanted, root=str(root), numbers=numbers, emit=emit, tool=tool)
        last = directory.read(root)
        trace = t.Trace(root=str(root), base=base, ops=tuple(ops), threads=finished.watched.threads)
        return Recorded(trace, last, finished, root)

    return record


PRELUDE = "import os, sys, fcntl, mmap, socket, stat, ctypes, threading\nlibc = ctypes.CDLL(None, use_errno=True)\n"
