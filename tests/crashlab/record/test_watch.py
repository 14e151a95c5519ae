"""Random programs: whatever they do, the trace is what happened on the disk."""

from __future__ import annotations

import os
import sys
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="holds the calls of Linux against its disk")

NAMES = ("a", "b", "folder", "folder/a", "folder/b", "deep/er", "link", "../tmp/t", "\udcff")
MODES = ("w", "a", "x", "r+", "w+", "a+")
FLAGS = (0, os.O_APPEND, os.O_TRUNC, os.O_CREAT, os.O_CREAT | os.O_APPEND, os.O_CREAT | os.O_EXCL, os.O_DSYNC)

names = st.sampled_from(NAMES)
small = st.integers(0, 3)
places = st.sampled_from((0, 1, 100, 4095, 4096, 9000))
data = st.tuples(st.integers(1, 255), st.sampled_from((0, 1, 5, 4096, 9000))).map(
    lambda pair: bytes(pair[:1]) * pair[1]
)
steps = st.one_of(
    st.tuples(st.just("open"), names, st.sampled_from(MODES), st.sampled_from((0, -1, 10))),
    st.tuples(st.just("os_open"), names, st.sampled_from(FLAGS)),
    st.tuples(st.just("write"), small, data),
    st.tuples(st.just("pwrite"), small, data, places),
    st.tuples(st.just("writev"), small, data, data),
    st.tuples(st.just("seek"), small, places),
    st.tuples(st.just("ftruncate"), small, places),
    st.tuples(st.sampled_from(("flush", "close", "dup", "fsync")), small),
    st.tuples(st.sampled_from(("truncate", "chmod_to")), names, places),
    st.tuples(st.sampled_from(("rename", "replace", "link", "symlink", "copy")), names, names),
    st.tuples(st.sampled_from(("unlink", "mkdir", "rmdir", "mkfifo", "makedirs")), names),
)


class Program:
    """Runs steps; what fails, fails: the disk says whether anything happened."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.files: list[Any] = []
        self.open("a", "r+", -1)
        self.open("b", "a+", 0)

    def file(self, which: int) -> Any:
        """One of the open files."""
        return self.files[which % len(self.files)]

    def path(self, name: str) -> str:
        """The real path of a name."""
        return f"{self.folder}/{name}"

    def run(self, program: list[tuple[Any, ...]]) -> int:
        """How many steps succeeded."""
        done = 0
        for name, *arguments in program:
            try:
                getattr(self, name)(*arguments)
                done += 1
            except (OSError, ValueError, ZeroDivisionError):
                continue
        for file in self.files:
            file.close()
        return done

    def open(self, name: str, mode: str, buffering: int) -> None:
        """A new file at the end of the list; a FIFO would wait for its other end."""
        if not os.path.exists(self.path(name)) or os.path.isfile(self.path(name)):
            self.files.append(open(self.path(name), mode + "b", buffering))  # noqa: SIM115 - closed by a later step

    def os_open(self, name: str, flags: int) -> None:
        """A new descriptor, as a file without a buffer."""
        descriptor = os.open(self.path(name), os.O_RDWR | os.O_NONBLOCK | flags, 0o640)
        self.files.append(open(descriptor, "r+b", buffering=0))  # noqa: SIM115 - closed by a later step

    def write(self, which: int, data: bytes) -> None:
        """Through the layers."""
        self.file(which).write(data)

    def pwrite(self, which: int, data: bytes, offset: int) -> None:
        """Past the layers."""
        os.pwrite(self.file(which).fileno(), data, offset)

    def writev(self, which: int, *data: bytes) -> None:
        """Past the layers, at the position."""
        os.writev(self.file(which).fileno(), data)

    def seek(self, which: int, offset: int) -> None:
        """Also past the end."""
        self.file(which).seek(offset)

    def ftruncate(self, which: int, size: int) -> None:
        """By the file's own method."""
        self.file(which).truncate(size)

    def flush(self, which: int) -> None:
        """To the kernel."""
        self.file(which).flush()

    def fsync(self, which: int) -> None:
        """To the disk."""
        os.fsync(self.file(which).fileno())

    def close(self, which: int) -> None:
        """With the buffer that is left."""
        self.files.pop(which % len(self.files)).close()

    def dup(self, which: int) -> None:
        """A second descriptor with the same position."""
        self.files.append(open(os.dup(self.file(which).fileno()), "r+b", buffering=0))  # noqa: SIM115 - closed later

    def copy(self, source: str, target: str) -> None:
        """As shutil does it."""
        import shutil  # noqa: PLC0415 - travels to the recorded process

        if os.path.isfile(self.path(source)) and (os.path.isfile(self.path(target)) or not os.path.exists(target)):
            shutil.copyfile(self.path(source), self.path(target))

    def symlink(self, target: str, name: str) -> None:
        """The target is written as it is."""
        os.symlink(target, self.path(name))

    def chmod_to(self, name: str, mode: int) -> None:
        """Some bits of a number that has them."""
        os.chmod(self.path(name), 0o600 | (mode & 0o7777))

    def __getattr__(self, name: str) -> Any:
        """Every other step is a function of os on paths."""
        function = getattr(os, name)

        def step(*arguments: Any) -> Any:
            return function(*(self.path(each) if isinstance(each, str) else each for each in arguments))

        return step


def before(folder: str) -> None:
    """Something to work on, so that most steps succeed."""
    for name in ("a", "b", "folder/a", "folder/c"):
        os.makedirs(os.path.dirname(f"{folder}/{name}"), exist_ok=True)
        with open(f"{folder}/{name}", "wb") as file:
            file.write(name.encode() * 700)
    os.symlink("folder/c", f"{folder}/link")


def run(folder: str, program: list[tuple[Any, ...]]) -> int:
    """The workload."""
    return Program(folder).run(program)


@given(program=st.lists(steps, min_size=20, max_size=50))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_a_random_program_is_recorded_as_it_happened(record: Any, program: list[tuple[Any, ...]]) -> None:
    """Before every op, and at the end, the replayed tree equals the real directory."""
    recorded = record(run, program, before=before).prove()
    assert recorded.watched.unseen == ()


def test_the_random_programs_do_something(record: Any) -> None:
    """One program of every step succeeds in nearly all of them, so that the test above is not idle."""
    program = [
        *(("makedirs", "deep/er"), ("mkdir", "folder/b"), ("rmdir", "folder/b"), ("write", 0, b"x" * 9000)),
        *(("os_open", "folder/a", os.O_CREAT), ("pwrite", 1, b"y", 100), ("writev", 1, b"1", b"2"), ("dup", 1)),
        *(("unlink", "link"), ("open", "link", "x", 0), ("unlink", "link")),
        *(("seek", 0, 4096), ("ftruncate", 0, 100), ("flush", 0), ("fsync", 0), ("close", 0), ("truncate", "a", 1)),
        *(("rename", "a", "b"), ("link", "b", "folder/b"), ("symlink", "b", "link"), ("copy", "b", "../tmp/t")),
        *(("unlink", "link"), ("chmod_to", "b", 0o777), ("rmdir", "deep/er"), ("mkfifo", "\udcff")),
    ]
    recorded = record(run, program, before=before).prove()
    assert recorded.value == len(program)
    assert len(set(recorded.kinds)) >= 10
