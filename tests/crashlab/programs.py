"""Random programs on a few files, as data: what Hypothesis draws and a recorded process runs.

A step that the file system refuses (a name that is not there) is passed over, so that every list of
steps is a program.
"""

from __future__ import annotations

import contextlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

if TYPE_CHECKING:
    from collections.abc import Callable

    from crashlab.lab import Lab

Step = list[Any]
NAMES = st.sampled_from(["a", "b", "sub/c"])
SIZES = st.one_of(st.integers(0, 40), st.sampled_from([4095, 4096, 4097, 9000, 20_000]))
OFFSETS = st.sampled_from([0, 1, 100, 4095, 4096, 5000])
STEPS: st.SearchStrategy[Step] = st.one_of(
    st.tuples(st.just("overwrite"), NAMES, SIZES),
    st.tuples(st.just("append"), NAMES, SIZES),
    st.tuples(st.just("pwrite"), NAMES, OFFSETS, SIZES),
    st.tuples(st.just("buffered"), NAMES, st.lists(SIZES, max_size=4)),
    st.tuples(st.just("writev"), NAMES, st.lists(SIZES, max_size=4)),
    st.tuples(st.just("truncate"), NAMES, SIZES),
    st.tuples(st.just("rename"), NAMES, NAMES),
    st.tuples(st.just("link"), NAMES, NAMES),
    st.tuples(st.just("unlink"), NAMES),
    st.tuples(st.just("symlink"), NAMES, NAMES),
    st.tuples(st.just("mkdir")),
    st.tuples(st.just("fsync"), NAMES),
    st.tuples(st.just("chmod"), NAMES, st.sampled_from([0o600, 0o644, 0o400])),
    st.tuples(st.just("effect")),
    st.tuples(st.just("ack")),
).map(list)
PROGRAMS = st.lists(STEPS, min_size=1, max_size=12)


def _data(size: int) -> bytes:
    return (b"0123456789abcdef" * (size // 16 + 1))[:size]


def _descriptor(path: Path, flags: int, work: Callable[[int], object]) -> None:
    descriptor = os.open(path, flags, 0o644)
    try:
        work(descriptor)
    finally:
        os.close(descriptor)


def _buffered(path: Path, sizes: list[int]) -> None:
    with path.open("r+b" if path.exists() else "wb") as file:
        for size in sizes:
            file.write(_data(size))


ACTIONS: dict[str, Callable[..., object]] = {
    "overwrite": lambda _lab, path, size: path.write_bytes(_data(size)),
    "append": lambda _lab, path, size: _descriptor(
        path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, lambda descriptor: os.write(descriptor, _data(size))
    ),
    "pwrite": lambda _lab, path, offset, size: _descriptor(
        path, os.O_WRONLY | os.O_CREAT, lambda descriptor: os.pwrite(descriptor, _data(size), offset)
    ),
    "buffered": lambda _lab, path, sizes: _buffered(path, sizes),
    "writev": lambda _lab, path, sizes: _descriptor(
        path, os.O_WRONLY | os.O_CREAT, lambda descriptor: os.writev(descriptor, [_data(size) for size in sizes])
    ),
    "truncate": lambda _lab, path, size: os.truncate(path, size),
    "rename": lambda lab, path, other: path.rename(lab.dir / other),
    "link": lambda lab, path, other: os.link(path, lab.dir / other),
    "unlink": lambda _lab, path: path.unlink(),
    "symlink": lambda lab, path, other: os.symlink(path, lab.dir / other),
    "mkdir": lambda lab: (lab.dir / "sub").mkdir(),
    "fsync": lambda _lab, path: _descriptor(path, os.O_RDONLY, os.fsync),
    "chmod": lambda _lab, path, mode: path.chmod(mode),
    "effect": lambda lab: lab.effect("mail"),
    "ack": lambda lab: lab.ack(),
}


def run_steps(lab: Lab, steps: list[Step]) -> str:
    """Run a program in the lab's directory."""
    for action, *arguments in steps:
        if arguments:
            arguments[0] = lab.dir / arguments[0]
        with contextlib.suppress(OSError):
            ACTIONS[action](lab, *arguments)
    return "done"


@dataclass(frozen=True)
class Runs:
    """Runs the program that the file ``path`` holds at the moment."""

    path: str

    def __call__(self, lab: Lab) -> str:
        """Read it and run it."""
        return run_steps(lab, json.loads(Path(self.path).read_text()))
