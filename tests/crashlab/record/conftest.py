"""The ``record`` fixture: runs a workload of a test in a recorded process, and holds it against the disk."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cloudpickle
import pytest

from crashlab.record.proof import replay_proof

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from crashlab import trace as t
    from crashlab.record.python import Watched
    from crashlab.tree import Tree

SERVER = Path(__file__).with_name("server.py")


@dataclass(frozen=True)
class Recorded:
    """One recorded run. ``seen`` are the real trees before each op, ``value`` what the workload returned."""

    trace: t.Trace
    last: Tree
    watched: Watched
    seen: list[tuple[int, Tree]]
    value: Any
    error: str

    @property
    def kinds(self) -> list[str]:
        """The kinds of the ops in order."""
        return [op.KIND for op in self.trace.ops]

    def ops(self, kind: str) -> list[Any]:
        """The ops of one kind."""
        return [op for op in self.trace.ops if kind == op.KIND]

    def tree(self, done: int) -> Tree:
        """The replayed tree after ``done`` ops."""
        tree = self.trace.base
        for op in self.trace.ops[:done]:
            tree = tree.apply(op)
        return tree

    def prove(self) -> Recorded:
        """The end, and the moment before every op, are on the real disk what the trace says."""
        assert self.error == ""
        assert replay_proof(self.trace, self.last, rebuilt=()) == ()
        for n, real in self.seen:
            assert self.tree(n - 1).difference(real) == [], f"before op {n}"
        return self


def furnish(folder: str) -> None:
    """A file with three names of two kinds, a directory, a FIFO."""
    Path(folder, "old").write_bytes(b"old contents")
    Path(folder, "full").mkdir()
    Path(folder, "full", "inside").write_bytes(bytes(range(256)) * 64)
    os.link(Path(folder, "old"), Path(folder, "full", "twin"))
    os.symlink("../old", Path(folder, "full", "pointer"))
    os.mkfifo(Path(folder, "fifo"))


class Server:
    """A recorded process that runs one workload after another."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._process = subprocess.Popen(
            [sys.executable, SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=Path(__file__).parent
        )

    def __call__(  # noqa: PLR0913 - one option per thing that a test may want
        self,
        workload: Callable[..., Any],
        *arguments: Any,
        before: Callable[[str], None] | None = None,
        kill: tuple[int, int] | None = None,
        drop: str | None = None,
        look: bool = True,
        outside: tuple[str, ...] = (),
        root: str | None = None,
    ) -> Recorded:
        """Run ``workload(dir, *arguments)`` recorded, in fresh traced places that ``before(dir)`` fills."""
        request = {"workload": workload, "arguments": arguments, "before": before, "kill": kill}
        cloudpickle.register_pickle_by_value(sys.modules[workload.__module__])
        form = cloudpickle.dumps(
            request | {"drop": drop, "look": look, "outside": outside, "root": root or str(self.root)}
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(len(form).to_bytes(8, "big") + form)
        self._process.stdin.flush()
        size = int.from_bytes(self._process.stdout.read(8), "big")
        assert size, "the recorded process died; its last words are above"
        return Recorded(**pickle.loads(self._process.stdout.read(size)))

    def furnished(self, workload: Callable[..., Any]) -> Recorded:
        """Run ``workload(dir)`` where there are some files and links before it."""
        cloudpickle.register_pickle_by_value(sys.modules[__name__])
        return self(workload, before=furnish)

    def close(self) -> None:
        """End the process."""
        assert self._process.stdout is not None
        self._process.communicate(timeout=300)
        assert self._process.returncode == 0


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The recorded process of this test module."""
    server = Server(tmp_path_factory.mktemp("root"))
    yield server
    server.close()
