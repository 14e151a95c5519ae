"""Every way of writing that Python code has: recorded, replayed, and held against the real directory."""

from __future__ import annotations

import _io
import builtins
import contextlib
import fcntl
import io
import os
import pathlib
import shutil
import socket
import stat
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="holds the calls of Linux against its disk")

Workload = Callable[[str], object]
PAGES = bytes(range(256)) * 64  # 16 KiB: more than any buffer


def before(folder: str) -> None:
    """What lies in the directory before each workload."""
    Path(folder, "old").write_bytes(b"old contents")
    Path(folder, "full").mkdir()
    Path(folder, "full", "inside").write_bytes(PAGES)
    os.link(Path(folder, "old"), Path(folder, "full", "twin"))
    os.symlink("../old", Path(folder, "full", "pointer"))
    os.mkfifo(Path(folder, "fifo"))


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


def paths(d: str) -> None:
    path = pathlib.Path(d)
    (path / "text").write_text("text", encoding="utf-8")
    (path / "bytes").write_bytes(b"bytes")
    (path / "touched").touch()
    (path / "old").touch()
    (path / "a" / "b").mkdir(parents=True)
    (path / "text").rename(path / "a" / "text")
    (path / "bytes").replace(path / "old")
    (path / "a" / "text").chmod(0o600)
    (path / "sym").symlink_to("old")
    (path / "hard").hardlink_to(path / "old")
    (path / "sym").unlink()
    (path / "a" / "b").rmdir()


def temporary_files(d: str) -> None:
    with tempfile.TemporaryFile() as file:
        file.write(PAGES)
    with tempfile.NamedTemporaryFile() as named:
        named.write(b"goes")
    with tempfile.NamedTemporaryFile(dir=d, delete=False) as named:
        named.write(b"stays")
    os.replace(named.name, f"{d}/old")
    with tempfile.SpooledTemporaryFile(max_size=10) as spooled:
        spooled.write(PAGES)
    descriptor, name = tempfile.mkstemp(dir=d)
    os.write(descriptor, b"made")
    os.close(descriptor)
    os.unlink(name)
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "x").write_bytes(b"x")
    os.rmdir(tempfile.mkdtemp())


def a_nameless_file_gets_a_name(d: str) -> None:
    descriptor = os.open(d, os.O_TMPFILE | os.O_RDWR, 0o644)
    os.write(descriptor, PAGES)
    os.fsync(descriptor)
    os.link(f"/proc/self/fd/{descriptor}", f"{d}/new", src_dir_fd=descriptor, follow_symlinks=True)
    os.write(descriptor, b"more")
    os.close(descriptor)


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


def names(d: str) -> None:
    os.rename(f"{d}/old", f"{d}/new")
    os.replace(f"{d}/new", f"{d}/full/inside")
    os.renames(f"{d}/full/inside", f"{d}/p/q/r")
    os.rename(f"{d}/full", f"{d}/moved")
    os.rename(f"{d}/p/q/r", f"{d}/moved/twin")  # both are one inode: nothing happens
    os.mkdir(f"{d}/empty", 0o700)
    os.rename(f"{d}/moved", f"{d}/empty")
    os.link(f"{d}/empty/twin", f"{d}/third")
    os.symlink("nowhere", f"{d}/dangling")
    os.symlink(os.fsencode(d), os.fsencode(f"{d}/bytes"))
    os.rename(f"{d}/dangling", f"{d}/bytes")
    os.unlink(f"{d}/bytes")
    os.remove(f"{d}/third")
    os.makedirs(f"{d}/x/y/z", exist_ok=True)
    os.removedirs(f"{d}/x/y/z")
    os.mkdir(f"{d}/slash/")
    os.rename(f"{d}/slash/", f"{d}/slash2/")
    os.rmdir(f"{d}/slash2/")


def relative_to_a_directory(d: str) -> None:
    descriptor = os.open(f"{d}/full", os.O_RDONLY | os.O_DIRECTORY)
    file = os.open("new", os.O_WRONLY | os.O_CREAT, dir_fd=descriptor)
    os.write(file, b"new")
    os.close(file)
    os.mkdir("folder", dir_fd=descriptor)
    os.rename("new", "folder/newer", src_dir_fd=descriptor, dst_dir_fd=descriptor)
    os.link("folder/newer", "linked", src_dir_fd=descriptor, dst_dir_fd=descriptor)
    os.symlink("x", "sym", dir_fd=descriptor)
    os.mkfifo("pipe", dir_fd=descriptor)
    os.chmod("linked", 0o600, dir_fd=descriptor)
    os.utime("linked", (1, 2), dir_fd=descriptor)
    os.rename(f"{d}/full", f"{d}/other")
    os.unlink("sym", dir_fd=descriptor)
    os.unlink("folder/newer", dir_fd=descriptor)
    os.rmdir("folder", dir_fd=descriptor)
    os.fsync(descriptor)
    os.close(descriptor)


def through_links(d: str) -> None:
    os.symlink("full", f"{d}/alias")
    os.symlink("not-yet", f"{d}/dangling")
    Path(d, "alias", "pointer").write_bytes(b"written through two links")
    Path(d, "dangling").write_bytes(b"made by way of a link")
    Path(d, "alias", "..", "alias", "x").write_bytes(b"x")
    os.rename(f"{d}/alias/x", f"{d}/alias/../y")
    os.chmod(f"{d}/full/pointer", 0o600)
    os.utime(f"{d}/full/pointer", ns=(1, 2), follow_symlinks=False)
    with contextlib.suppress(FileExistsError):
        os.open(f"{d}/dangling", os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    with contextlib.suppress(OSError):
        os.open(f"{d}/dangling", os.O_WRONLY | os.O_NOFOLLOW)


def attributes(d: str) -> None:
    os.chmod(f"{d}/old", 0o400)
    os.chmod(f"{d}/old", 0o400)
    descriptor = os.open(f"{d}/old", os.O_RDONLY)
    os.fchmod(descriptor, 0o600)
    os.chmod(descriptor, 0o640)
    os.utime(descriptor, ns=(5, 6))
    os.setxattr(descriptor, "user.note", b"by descriptor")
    os.close(descriptor)
    os.setxattr(f"{d}/old", "user.note", b"new")
    os.setxattr(f"{d}/old", "user.note", b"new")
    os.setxattr(f"{d}/full", b"user.folder", bytearray(b"\0\xff"))
    os.setxattr(f"{d}/old", "user.other", b"")
    os.removexattr(f"{d}/old", "user.note")
    os.utime(f"{d}/old")
    os.chmod(d, 0o700)


def special_files(d: str) -> None:
    os.mkfifo(f"{d}/pipe", 0o600)
    os.mknod(f"{d}/plain", 0o644)
    os.mknod(f"{d}/plain2", stat.S_IFREG | 0o600)
    os.mknod(f"{d}/pipe2", stat.S_IFIFO | 0o644)
    os.chmod(f"{d}/pipe", 0o644)
    os.rename(f"{d}/pipe", f"{d}/pipe3")
    with socket.socket(socket.AF_UNIX) as listener, contextlib.chdir(d):
        listener.bind("socket")


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


def shell_utilities(d: str) -> None:
    shutil.copyfile(f"{d}/full/inside", f"{d}/copy")
    shutil.copy2(f"{d}/old", f"{d}/copy2")
    shutil.copytree(f"{d}/full", f"{d}/tree", symlinks=True)
    shutil.move(f"{d}/tree", f"{d}/../home/tree")
    shutil.rmtree(f"{d}/full")


def odd_names(d: str) -> None:
    name = os.fsencode(d) + b"/\xff\xfe"
    with open(name, "wb") as file:
        file.write(b"no UTF-8")
    os.rename(name, name + b"2")
    Path(d, "a: b\nc").write_bytes(b"a colon and a new line")
    Path(d, "\u00e9").write_bytes(b"composed")
    Path(d, "e\u0301").write_bytes(b"decomposed")


def one_name_again_and_again(d: str) -> None:
    for turn in range(30):  # the kernel gives the same real inode number out again and again
        Path(d, "new").write_bytes(b"%d" % turn)
        os.unlink(f"{d}/new")
        os.mkdir(f"{d}/new")
        os.rmdir(f"{d}/new")


def calls_that_fail(d: str) -> None:
    calls: list[Callable[[], Any]] = [
        lambda: Path(d, "none", "x").write_bytes(b""),
        lambda: Path(d).write_bytes(b""),
        lambda: Path(d, "old").touch(exist_ok=False),
        lambda: os.mkdir(f"{d}/full"),
        lambda: os.rmdir(f"{d}/full"),
        lambda: os.unlink(f"{d}/none"),
        lambda: os.unlink(d),
        lambda: os.rename(f"{d}/none", f"{d}/x"),
        lambda: os.rename(f"{d}/old", f"{d}/full"),
        lambda: os.rename(d, f"{d}/full/below"),
        lambda: os.link(f"{d}/none", f"{d}/x"),
        lambda: os.link(f"{d}/old", f"{d}/full/twin"),
        lambda: os.symlink("x", f"{d}/old"),
        lambda: os.truncate(f"{d}/none", 1),
        lambda: os.write(os.open(f"{d}/old", os.O_RDONLY), b"x"),
        lambda: os.ftruncate(os.open(f"{d}/old", os.O_RDONLY), 0),
        lambda: os.removexattr(f"{d}/old", "user.none"),
    ]
    for call in calls:
        with contextlib.suppress(OSError):
            call()
            pytest.fail("it should have failed")


WORKLOADS: tuple[Workload, ...] = (
    *(text_layer, buffered_layer, raw_layer, every_open, through_descriptors, a_copied_descriptor, paths),
    *(temporary_files, a_nameless_file_gets_a_name, the_write_family, appending, sizes, names),
    *(relative_to_a_directory, through_links, attributes, special_files, bytes_that_the_kernel_moves),
    *(a_pipe_that_is_empty_at_first, shell_utilities, odd_names, one_name_again_and_again, calls_that_fail),
)


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda workload: workload.__name__)
def test_the_trace_is_what_happened_on_disk(record: Any, workload: Workload) -> None:
    """Before every op, and at the end, the real directory is what the trace says."""
    recorded = record(workload, before=before).prove()
    assert recorded.watched.unseen == ()
    assert recorded.watched.outside_writes == ()


def test_what_changes_nothing_is_no_op(record: Any) -> None:
    """Opening, emptying what is empty, renaming an inode onto itself, and failing calls make no op."""

    def nothing(d: str) -> None:
        with open(f"{d}/old", "r+b") as file:
            file.write(b"")
        with open(f"{d}/old", "rb") as file:
            file.read()
        os.rename(f"{d}/old", f"{d}/full/twin")
        os.chmod(f"{d}/old", stat.S_IMODE(os.stat(f"{d}/old").st_mode))
        os.truncate(f"{d}/old", 12)
        calls_that_fail(d)

    assert record(nothing, before=before).prove().kinds == []


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
        os.close(descriptor)

    assert [op.sync for op in record(write, flag).prove().ops("write")] == [sync]


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


def test_a_reused_inode_number_is_a_new_file(record: Any) -> None:
    """The kernel reuses inode numbers; the trace does not."""
    created = record(one_name_again_and_again, before=before).prove().ops("create")
    assert len(created) == 30
    assert len({op.inode for op in created}) == 30


def test_a_name_of_the_base_keeps_its_number(record: Any) -> None:
    """Files that were there before are known by their number in the base tree, also by another link."""

    def write(d: str) -> None:
        Path(d, "full", "twin").write_bytes(b"x")

    recorded = record(write, before=before).prove()
    assert {op.inode for op in recorded.trace.ops} == {recorded.trace.base.lookup("dir/old")}
    assert recorded.kinds == ["truncate", "write"]


def test_times_are_the_times_of_the_disk(record: Any) -> None:
    """The replayed files have the modification times that the real ones have."""
    for workload in (text_layer, the_write_family, attributes):
        recorded = record(workload, before=before).prove()
        replayed = recorded.tree(len(recorded.trace.ops))
        for path, _, node in recorded.last.walk():
            if path in {"dir/new", "dir/old"}:
                assert replayed.node(path).mtime_ns == node.mtime_ns, path
