"""Every way of changing names and attributes: recorded, replayed, and held against the real directory."""

from __future__ import annotations

import contextlib
import os
import pathlib
import shutil
import socket
import stat
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="holds the calls of Linux against its disk")

Workload = Callable[[str], object]
PAGES = bytes(range(256)) * 64  # 16 KiB: more than any buffer


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
    os.link(f"{d}/dangling", f"{d}/dangling-too")
    os.symlink("circle", f"{d}/circle")
    os.link(f"{d}/circle", f"{d}/circle-too")
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
    paths,
    temporary_files,
    a_nameless_file_gets_a_name,
    names,
    relative_to_a_directory,
    through_links,
    attributes,
    special_files,
    shell_utilities,
    odd_names,
    one_name_again_and_again,
    calls_that_fail,
)


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda workload: workload.__name__)
def test_the_trace_is_what_happened_on_disk(record: Any, workload: Workload) -> None:
    """Before every op, and at the end, the real directory is what the trace says."""
    recorded = record.furnished(workload).prove()
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

    assert record.furnished(nothing).prove().kinds == []


def test_a_reused_inode_number_is_a_new_file(record: Any) -> None:
    """The kernel reuses inode numbers; the trace does not."""
    created = record.furnished(one_name_again_and_again).prove().ops("create")
    assert len(created) == 30
    assert len({op.inode for op in created}) == 30


def test_a_name_of_the_base_keeps_its_number(record: Any) -> None:
    """Files that were there before are known by their number in the base tree, also by another link."""

    def write(d: str) -> None:
        Path(d, "full", "twin").write_bytes(b"x")

    recorded = record.furnished(write).prove()
    assert {op.inode for op in recorded.trace.ops} == {recorded.trace.base.lookup("dir/old")}
    assert recorded.kinds == ["truncate", "write"]
