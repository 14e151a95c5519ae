"""Every way of writing bytes that Python code has: recorded, replayed, and held against the real directory."""

from __future__ import annotations

import _io
import builtins
import fcntl
import io
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="holds the calls of Linux against its disk")

Workload = Callable[[str], object]
PAGES = bytes(range(256)) * 64  # 16 KiB: more than any buffer


def text_layer(d: str) -> None:
    with open(f"{d}/new", "w", encoding="utf-8") as file:
        file.write("grüße\n" * 3)
    with open(f"{d}/new", "a", encoding="utf-8") as file:
        file.write("x" * 20_000)
    with open(f"{d}/old", "r+", encoding="utf-8") as file:
        file.read(3)
        file.seek(0)
        file.write("OLD")


def buffered_layer(d: str) -> None:
    with open(f"{d}/new", "xb") as file:
        file.write(b"abc")
        file.seek(10)
        file.write(b"after a hole")
        file.truncate(15)
    with open(f"{d}/old", "rb+") as file:
        file.seek(4)
        file.write(b"-")
        file.flush()
        file.truncate()
    with open(f"{d}/old", "wb") as file:
        file.write(PAGES)


def raw_layer(d: str) -> None:
    with open(f"{d}/new", "wb", buffering=0) as raw:
        assert isinstance(raw, io.FileIO)
        raw.write(b"one")
        raw.write(bytearray(b"two"))
        raw.write(memoryview(b"three"))
        raw.truncate(4)
        raw.write(b"")
    with io.FileIO(f"{d}/new", "a") as raw:
        raw.write(b"appended")
    with _io.FileIO(f"{d}/other", "x+") as raw:
        raw.write(b"from the start")
        raw.seek(5)
        raw.write(b"THE")


def every_open(d: str) -> None:
    for number, function in enumerate((open, builtins.open, io.open, _io.open)):
        with function(f"{d}/{number}", "w", encoding="ascii", newline="\r\n", buffering=1) as file:
            file.write("line\nrest")
    with open(Path(d, "path"), "wb") as file:
        file.write(b"by a path object")
    with open(os.fsencode(f"{d}/bytes"), "wb", 2) as file:
        file.write(b"by a name of bytes, with a buffer of two")
    with open(f"{d}/opener", "w+b", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
        file.write(b"by an opener")


def through_descriptors(d: str) -> None:
    descriptor = os.open(f"{d}/new", os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o640)
    with open(descriptor, "wb", closefd=False) as file:
        file.write(b"wrapped")
    with os.fdopen(descriptor, "r+", encoding="ascii") as text:
        text.seek(0, io.SEEK_END)
        text.write(" again")


def a_copied_descriptor(d: str) -> None:
    first = os.open(f"{d}/new", os.O_WRONLY | os.O_CREAT)
    second = os.dup(first)
    os.close(first)
    os.write(second, b"through the copy")
    third = os.dup2(second, 200)
    os.close(second)
    os.write(third, b", and its copy")
    os.rename(f"{d}/new", f"{d}/renamed")
    os.write(third, b", under another name")
    os.unlink(f"{d}/renamed")
    os.write(third, b", and under none")
    os.close(third)


def the_write_family(d: str) -> None:
    descriptor = os.open(f"{d}/new", os.O_RDWR | os.O_CREAT)
    os.write(descriptor, PAGES)
    os.pwrite(descriptor, b"in the middle", 5000)
    os.writev(descriptor, [b"a", bytearray(b"bb"), b"", b"ccc"])
    os.pwritev(descriptor, [b"first", b"second"], 1)
    os.pwritev(descriptor, [b"synced"], 100, os.RWF_DSYNC)
    os.lseek(descriptor, 3, os.SEEK_SET)
    os.write(descriptor, b"here")
    os.write(descriptor, b"")
    os.close(descriptor)


def appending(d: str) -> None:
    first = os.open(f"{d}/log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    second = os.open(f"{d}/log", os.O_WRONLY | os.O_APPEND)
    os.write(first, b"one\n")
    os.write(second, b"two\n")
    os.lseek(first, 0, os.SEEK_SET)
    os.writev(first, [b"th", b"ree\n"])
    os.pwrite(first, b"four\n", 0)
    os.pwritev(second, [b"five\n"], 0, os.RWF_APPEND)
    os.close(first)
    os.close(second)


def sizes(d: str) -> None:
    os.truncate(f"{d}/old", 3)
    os.truncate(f"{d}/old", 3)
    descriptor = os.open(f"{d}/old", os.O_RDWR)
    os.ftruncate(descriptor, 5000)
    os.truncate(descriptor, 4999)
    os.posix_fallocate(descriptor, 4000, 6000)
    os.posix_fallocate(descriptor, 0, 10)
    os.close(descriptor)
    os.close(os.open(f"{d}/old", os.O_RDONLY | os.O_TRUNC))
    os.close(os.open(f"{d}/old", os.O_WRONLY | os.O_TRUNC | os.O_CREAT))


def bytes_that_the_kernel_moves(d: str) -> None:
    source = os.open(f"{d}/full/inside", os.O_RDONLY)
    target = os.open(f"{d}/new", os.O_WRONLY | os.O_CREAT)
    os.sendfile(target, source, 100, 5000)
    os.sendfile(target, source, None, 50)
    os.copy_file_range(source, target, 3000)
    os.copy_file_range(source, target, 10, 0, 9000)
    reading, writing = os.pipe()
    os.write(writing, b"through a pipe")
    os.splice(reading, target, 100)
    os.write(writing, b"to a place")
    os.splice(reading, target, 100, offset_dst=3)
    for descriptor in (source, target, reading, writing):
        os.close(descriptor)


def a_pipe_that_is_empty_at_first(d: str) -> None:
    reading, writing = os.pipe()
    target = os.open(f"{d}/new", os.O_WRONLY | os.O_CREAT)
    mover = threading.Thread(target=os.splice, args=(reading, target, 100))
    mover.start()
    Path(d, "other").write_bytes(b"written while the other thread waits")
    os.write(writing, b"now")
    mover.join()
    for descriptor in (target, reading, writing):
        os.close(descriptor)


WORKLOADS: tuple[Workload, ...] = (
    text_layer,
    buffered_layer,
    raw_layer,
    every_open,
    through_descriptors,
    a_copied_descriptor,
    the_write_family,
    appending,
    sizes,
    bytes_that_the_kernel_moves,
    a_pipe_that_is_empty_at_first,
)


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda workload: workload.__name__)
def test_the_trace_is_what_happened_on_disk(record: Any, workload: Workload) -> None:
    """Before every op, and at the end, the real directory is what the trace says."""
    recorded = record.furnished(workload).prove()
    assert recorded.watched.unseen == ()
    assert recorded.watched.outside_writes == ()


def test_what_a_buffer_holds_is_not_on_disk_yet(record: Any) -> None:
    """A write to a buffered file is an op when the buffer goes to the kernel, not before."""

    def buffered(d: str) -> None:
        file = open(f"{d}/new", "wb", buffering=4096)  # noqa: SIM115 - closed below, at a moment that matters
        file.write(b"held back")
        os.mkdir(f"{d}/1")
        file.flush()
        os.mkdir(f"{d}/2")
        file.write(b"x" * 4095)
        os.mkdir(f"{d}/3")
        file.write(b"yz")
        os.mkdir(f"{d}/4")
        file.close()

    recorded = record(buffered).prove()
    assert recorded.kinds == ["create", "mkdir", "write", "mkdir", "mkdir", "write", "mkdir", "write"]
    assert [len(op.data) for op in recorded.ops("write")] == [9, 4095, 2]


def test_barriers_are_ops(record: Any) -> None:
    """fsync, fdatasync and sync are recorded with the path they reached and what they promise."""

    def barriers(d: str) -> None:
        with open(f"{d}/new", "wb") as file:
            file.write(b"x")
            file.flush()
            os.fsync(file)
            os.fdatasync(file.fileno())
        descriptor = os.open(d, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)
        os.sync()

    recorded = record(barriers).prove()
    assert recorded.kinds == ["create", "write", "fsync", "fsync", "fsync", "sync"]
    assert [(op.path, op.data_only) for op in recorded.ops("fsync")] == [
        ("dir/new", False),
        ("dir/new", True),
        ("dir", False),
    ]


@pytest.mark.parametrize(("flag", "sync"), [(0, ""), (os.O_DSYNC, "data"), (os.O_SYNC, "all")])
def test_a_write_says_whether_it_was_synchronous(record: Any, flag: int, sync: str) -> None:
    """O_DSYNC and O_SYNC of the descriptor are part of each write."""

    def write(d: str, flag: int) -> None:
        descriptor = os.open(f"{d}/new", os.O_WRONLY | os.O_CREAT | flag)
        os.write(descriptor, b"x")
        os.pwritev(descriptor, [b"y"], 0, os.RWF_SYNC)
        os.pwritev(descriptor, [b"z"], 0, os.RWF_DSYNC)
        os.close(descriptor)

    assert [op.sync for op in record(write, flag).prove().ops("write")] == [sync, "all", sync or "data"]


def test_direct_writes_get_the_memory_of_the_subject(record: Any) -> None:
    """O_DIRECT wants aligned memory: the recorder must not put its own copy in the place."""

    def write(d: str) -> str:
        import mmap  # noqa: PLC0415 - pages are aligned

        try:
            descriptor = os.open(f"{d}/new", os.O_WRONLY | os.O_CREAT | os.O_DIRECT)
        except OSError as error:
            return str(error)
        with mmap.mmap(-1, 8192) as page:
            page[:4] = b"page"
            os.write(descriptor, page)
            os.writev(descriptor, [page])
            os.pwrite(descriptor, page, 4096)
            os.pwritev(descriptor, [page], 16384)
            with open(descriptor, "wb", buffering=0) as file:
                file.write(page)
        return ""

    recorded = record(write).prove()
    if recorded.value:
        pytest.skip(f"this file system has no direct writes: {recorded.value}")
    assert [op.offset for op in recorded.ops("write")] == [0, 8192, 4096, 16384, 16384]


def test_a_full_flush_is_known_by_its_number(record: Any) -> None:
    """F_FULLFSYNC, which Linux has not, is matched by the number that the platform gives it."""

    def flush(d: str) -> None:
        from crashlab.record import writes  # noqa: PLC0415 - looked at in the recorded process only

        writes.FULL_SYNC = fcntl.F_GETFD  # harmless, and stands in for macOS's number
        try:
            with open(f"{d}/new", "wb") as file:
                fcntl.fcntl(file, fcntl.F_GETFD)
                fcntl.fcntl(file.fileno(), fcntl.F_GETFL)
        finally:
            writes.FULL_SYNC = None

    assert [op.full for op in record(flush).prove().ops("fsync")] == [True]


def test_times_are_the_times_of_the_disk(record: Any) -> None:
    """The replayed files have the modification times that the real ones have."""
    for workload in (text_layer, the_write_family):
        recorded = record.furnished(workload).prove()
        replayed = recorded.tree(len(recorded.trace.ops))
        for path, _, node in recorded.last.walk():
            if path in {"dir/new", "dir/old"}:
                assert replayed.node(path).mtime_ns == node.mtime_ns, path
