"""A real file system on a disk of our own: marks, images, failing and slow writes, and leaving nothing."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import shutil
from typing import TYPE_CHECKING

import pytest

from crashlab.disk import available, kernel
from crashlab.disk.available import KINDS, missing
from crashlab.disk.disk import RealDisk
from crashlab.disk.kinds import kind_of
from crashlab.disk.log import Flush, Image, Mark, Write
from crashlab.disk.wire import Control, mark
from crashlab.errors import LabError, UsageError
from crashlab.recover.place import base_tree
from tests.crashlab.disk.needs import kinds, left_of, needs

if TYPE_CHECKING:
    from pathlib import Path

    from crashlab.tree import Tree


def size_of(tree: Tree, path: str) -> int | None:
    node = tree.node(path)
    return None if node is None else node.content.size


def put(path: Path, data: bytes, *, sync: bool = False) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT)
    try:
        os.pwrite(descriptor, data, 0)
        if sync:
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


@pytest.mark.parametrize("kind", kinds(*KINDS))
def test_what_is_synced_is_in_every_image_and_nothing_is_left(kind: str) -> None:
    """Each kind starts with the three places, keeps what was fsynced, shows its bytes, and goes without a trace."""
    data = os.urandom(10_000)
    with RealDisk(kind) as disk:
        assert left_of(os.getpid())
        disk.mark(0)
        put(disk.path / "dir" / "a", data)
        disk.mark(1)
        put(disk.path / "dir" / "a", data, sync=True)
        disk.mark(2)
        log = disk.log()
        before = {disk.tree(image).digest for image in disk.images(log, 0, seed=1, count=8)}
        after = [disk.tree(image) for image in disk.images(log, 2, seed=1, count=8)]
        assert before == {base_tree().digest}
        assert after
        assert all(tree.node("dir/a").content.read() == data for tree in after)
        assert any(isinstance(entry, Flush) for entry in log.entries[log.position(1) : log.position(2)])
    assert left_of(os.getpid()) == []


@needs("ext4")
def test_what_is_not_synced_may_be_lost_and_a_renewed_disk_is_as_at_first() -> None:
    """Without a barrier some image lacks the file; after renew() live disk and images are empty again."""
    with RealDisk("ext4") as disk:
        put(disk.path / "dir" / "a", b"x" * 5000)
        kernel.sync_file_system(disk.path)
        disk.mark(1)
        log = disk.log()
        at = next(n for n, entry in enumerate(log.entries) if isinstance(entry, Flush))
        sizes = {
            size_of(disk.tree(Image(log.run, -1, ())), "dir/a"),
            size_of(disk.tree(Image(log.run, at, ())), "dir/a"),
        }
        assert None in sizes
        stale = next(disk.images(log, 1, seed=1, count=1))
        assert size_of(disk.tree(stale), "dir/a") == 5000
        disk.renew()
        assert os.listdir(disk.path / "dir") == []
        assert not [entry for entry in disk.log().entries if isinstance(entry, Mark)]
        with pytest.raises(LabError, match="the image is of run"):
            disk.tree(stale)


@needs("ext4")
def test_an_image_can_be_written_to_and_the_next_one_does_not_know() -> None:
    """A real recovery may run on a mounted image; the throw-away bytes are gone at the next mount."""
    with RealDisk("ext4") as disk:
        disk.mark(1)
        (image,) = disk.images(disk.log(), 1, seed=1, count=4)
        with disk.mounted(image) as path:
            put(path / "dir" / "recovered", b"x", sync=True)
        assert disk.tree(image).digest == base_tree().digest
        assert os.listdir(disk.path / "dir") == []


@needs("ext4")
def test_a_copy_of_the_mounts_in_another_process_is_noticed() -> None:
    """A process that took a copy of our namespace keeps the old file system alive: no wrong image is shown."""
    with RealDisk("ext4") as disk:
        disk.mark(1)
        (image,) = disk.images(disk.log(), 1, seed=1, count=1)
        ready, go_on = os.pipe(), os.pipe()
        with disk.mounted(image):
            pid = os.fork()
            if pid == 0:
                ctypes.CDLL(None).unshare(0x0002_0000)
                os.write(ready[1], b"x")
                os.close(go_on[1])
                os.read(go_on[0], 1)
                os._exit(0)
            os.read(ready[0], 1)
        with pytest.raises(LabError, match="still mounted in the mount namespace of another process"):
            disk.tree(image)
        for descriptor in go_on:
            os.close(descriptor)
        os.waitpid(pid, 0)
        assert disk.tree(image).digest == base_tree().digest
        for descriptor in ready:
            os.close(descriptor)


@needs("ext4")
def test_another_process_sets_marks_by_the_socket() -> None:
    """Only the path of the socket is needed; a word that nobody knows is refused."""
    with RealDisk("ext4") as disk:
        pid = os.fork()
        if pid == 0:
            mark(disk.control_socket, 41)
            os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0
        disk.mark(42)
        assert [entry.name for entry in disk.log().entries if isinstance(entry, Mark)] == [41, 42]
        stranger = Control.to(disk.control_socket)
        with pytest.raises(LabError, match="unknown command 'dance'"):
            stranger.ask("dance")
        stranger.close()
        path = disk.control_socket
    with pytest.raises(LabError, match="no disk listens on"):
        mark(path, 1)


@pytest.mark.parametrize("kind", kinds("ext4", "xfs", "btrfs"))
def test_a_failed_data_write_is_eio_once_and_the_bytes_are_not_on_disk(kind: str) -> None:
    """fsync says EIO, the next one says nothing, and no image has the new bytes."""
    with RealDisk(kind) as disk:
        page = b"data" * 1024
        disk.register([page])
        disk.fail(on=True)
        descriptor = os.open(disk.path / "dir" / "a", os.O_WRONLY | os.O_CREAT)
        os.write(descriptor, page)
        with pytest.raises(OSError, match="error") as caught:
            os.fsync(descriptor)
        assert caught.value.errno == errno.EIO
        disk.fail(on=False)
        os.fsync(descriptor)
        os.close(descriptor)
        with contextlib.suppress(OSError):  # syncfs tells the old error once more, to whoever has not heard it
            kernel.sync_file_system(disk.path)
        disk.mark(1)
        log = disk.log()
        assert any(isinstance(entry, Write) and entry.failed for entry in log.entries)
        for image in disk.images(log, 1, seed=1, count=8):
            node = disk.tree(image).node("dir/a")
            assert node is None or page not in node.content.read()


@needs("ext4")
def test_a_kernel_that_does_not_mount_is_an_error_with_its_words() -> None:
    """An empty disk is no ext4, and the error says so; the disk itself goes on."""
    with RealDisk("ext4") as disk:
        disk._unmount()
        empty = disk.path.parent / "empty"
        empty.write_bytes(b"")
        disk._control.ask("load", os.fsencode(empty))
        image = Image(disk.log().run, -1, ())
        with pytest.raises(LabError, match=r"does not mount .*Invalid argument"):
            disk.tree(image)
        disk.renew()
        assert sorted(os.listdir(disk.path)) == ["dir", "home", "tmp"]


@needs("ext4")
def test_an_error_inside_leaves_nothing() -> None:
    """An exception in the body, with an image mounted and a file open, ends in a clean system."""
    descriptor = -1
    with pytest.raises(ZeroDivisionError), RealDisk("ext4") as disk:  # noqa: PT012 - all of it is the body that fails
        disk.mark(1)
        (image,) = disk.images(disk.log(), 1, seed=1, count=1)
        descriptor = os.open(disk.path / "dir" / "a", os.O_WRONLY | os.O_CREAT)
        with disk.mounted(image):
            _ = 1 // 0
    os.close(descriptor)
    assert left_of(os.getpid()) == []


def test_kinds_are_those_that_can_be_made() -> None:
    """An unknown profile, and one that no disk carries, are usage errors."""
    assert kind_of("ext4[data=journal]").options == "data=journal"
    assert kind_of("xfs").image_options == "nouuid"
    with pytest.raises(UsageError, match="no disk carries 'posix'"):
        kind_of("posix")
    with pytest.raises(UsageError, match="unknown profile"):
        missing("zfs")


def test_what_is_missing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without mkfs, devices or rights the answer names what to do."""
    ask = available._missing.__wrapped__
    monkeypatch.setattr(available, "_may_mount", lambda: False)
    assert "root" in ask(kind_of("xfs"))
    monkeypatch.setattr(available, "_may_mount", lambda: True)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(os, "access", lambda path, _: path != "/dev/fuse")
    assert "/dev/fuse cannot be opened" in ask(kind_of("xfs"))
    monkeypatch.setattr(os, "access", lambda _path, _: True)
    monkeypatch.setattr(shutil, "which", lambda _: None)
    assert ask(kind_of("xfs")) == "mkfs.xfs is not installed; install xfsprogs"
    monkeypatch.setattr(shutil, "which", lambda name: name)
    monkeypatch.setattr(available, "_file_systems", lambda: {"ext4"})
    assert ask(kind_of("xfs")) == "this kernel does not know xfs; load it with 'modprobe xfs'"
    assert ask(kind_of("ext4")) == ""
