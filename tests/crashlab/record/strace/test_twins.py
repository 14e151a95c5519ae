"""The two recorders tell one program's ops alike: whatever it does, from inside or under strace."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from crashlab import directory
from crashlab import trace as t
from crashlab.record.proof import replay_proof
from crashlab.record.strace.watching import Program, watch

TWIN = str(Path(__file__).with_name("twin.py"))
NAMES = st.sampled_from(["a", "b", "d", "d/a", "d/b", "d/../c", "l", "l/a", "../dir/e"])
CALLS = st.sampled_from(
    [
        *("open", "open", "open", "nameless", "name", "dup", "close", "write", "write", "writev", "pwrite", "pwritev"),
        *("seek", "read", "file", "file", "ftruncate", "truncate", "allocate", "sendfile", "copy", "fsync", "times"),
        *("chmod", "attribute", "mkfifo", "mkdir", "mkdir", "rmdir", "unlink", "chdir", "rename", "rename", "link"),
        *("symlink", "symlink"),
    ]
)
STEPS = st.lists(st.tuples(CALLS, NAMES, NAMES, st.integers(0, 200), st.integers(0, 3000)), min_size=15, max_size=60)


def timeless(op: t.Op, left_out: tuple[str, ...] = ()) -> dict[str, Any]:
    """An op without what a clock or a source line says."""
    return {key: value for key, value in t.op_to_json(op).items() if key not in ("time_ns", "at", *left_out)}


def compared(op: t.Op, steps: list[Any]) -> dict[str, Any]:
    """What must be equal. Through a copied descriptor one recorder tells the path as opened, the other a later one."""
    by_descriptor = isinstance(op, t.Write | t.Truncate | t.Allocate | t.Fsync)
    copied = by_descriptor and any(step[0] == "dup" for step in steps)
    return timeless(op, ("path",) if copied else ())


def record_both(steps: list[Any]) -> tuple[list[t.Op], list[t.Op], t.Trace, Any]:
    """Ops from inside, ops under strace, and the latter's trace with the real last tree."""
    place = Path(tempfile.mkdtemp())
    root = place / "root"
    try:
        told = []
        for how in ("inside", "plain"):
            shutil.rmtree(root, ignore_errors=True)
            (root / "dir").mkdir(parents=True)
            base, numbers = directory.read_numbered(root)
            argv = [sys.executable, TWIN, how, str(root)]
            (place / "steps").write_text(json.dumps(steps))
            with open(place / "steps", "rb") as stdin:
                if how == "inside":
                    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
                    done = subprocess.run(
                        argv, stdin=stdin, cwd=root / "dir", env=environment, stdout=subprocess.PIPE, check=True
                    )
                    form = json.loads(done.stdout)
                    assert form["unseen"] == []
                    told.append([t.op_from_json(op) for op in form["ops"]])
                else:
                    ops: list[t.Op] = []
                    argv[1:1] = ["-S", "-E"]
                    program = Program(argv=argv, cwd=str(root / "dir"), streams={"stdin": stdin})
                    finished = watch(program, root=str(root), numbers=numbers, emit=ops.append)
                    assert finished.watched.unseen == ()
                    told.append(ops)
        trace = t.Trace(root=str(root), base=base, ops=tuple(told[1]))
        return told[0], told[1], trace, directory.read(root)
    finally:
        directory.clear(place)
        place.rmdir()


@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # each example is two processes: shrinking takes minutes
)
@given(steps=STEPS)
def test_both_recorders_tell_the_same(run: Any, steps: list[Any]) -> None:
    """Kind, path, inode, place, bytes, sync, size, mode and thread of every op are equal, and both are proven."""
    del run  # for its skip
    inside, under_strace, trace, last = record_both(steps)
    assert [compared(op, steps) for op in under_strace] == [compared(op, steps) for op in inside]
    assert replay_proof(trace, last, ()) == ()
