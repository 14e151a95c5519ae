"""The few system calls that Python does not offer: mount, unmount, loop devices, whole-file-system sync.

Numbers are those of ``linux/mount.h``, ``linux/loop.h``, ``linux/fs.h`` and ``linux/btrfs.h``.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import struct
import sys
from typing import TYPE_CHECKING

from crashlab.errors import LabError

if TYPE_CHECKING:
    from pathlib import Path

_LOOP_CLR_FD, _LOOP_GET_STATUS, _LOOP_CONFIGURE, _LOOP_CTL_GET_FREE = 0x4C01, 0x4C05, 0x4C0A, 0x4C82
_DIRECT_IO = 16
_CONFIG = struct.Struct("<II5Q4I64s64s32s2Q8Q")
_STATUS_BYTES, _NAME_AT, _FILE_NAME_BYTES = 232, 56, 63
_BTRFS_START_SYNC, _BTRFS_WAIT_SYNC = 0x8008_9418, 0x4008_9416
_MNT_DETACH = 2
_MOST_TRIES = 64
_PR_SET_IO_FLUSHER = 57
_CLONE_NEWNS = 0x0002_0000
_MS_REC, _MS_PRIVATE = 0x4000, 0x4_0000
_PRIVATE: set[int] = set()
"""Mount namespaces that this process made for itself."""

READ_ONLY, NO_ACCESS_TIMES = 1, 1024
"""Mount flags."""


def _library() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def private_mounts() -> None:
    """Give this thread, and the processes that it starts, a mount namespace of their own; once.

    A process that takes a copy of our namespace (every worker of the lab does) takes the mounts with
    it, and they outlive our unmount there: the next mount of the device would then get the old file
    system back, with all that it remembers. And mounts of a namespace go with its last process.
    """
    now = os.stat("/proc/thread-self/ns/mnt").st_ino
    if now in _PRIVATE:
        return
    if _library().unshare(_CLONE_NEWNS) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), "unshare")
    mount("none", "/", "", _MS_REC | _MS_PRIVATE)
    _PRIVATE.add(os.stat("/proc/thread-self/ns/mnt").st_ino)


def is_free(device: str) -> bool:
    """Whether no file system is mounted from ``device``, in any namespace."""
    try:
        os.close(os.open(device, os.O_RDONLY | os.O_EXCL | os.O_CLOEXEC))
    except OSError as error:
        if error.errno != errno.EBUSY:
            raise
        return False
    return True


def mount(source: str, target: str | Path, kind: str, flags: int = 0, options: str = "") -> None:
    """Attach a file system at ``target``, as the call of that name does. Raises OSError with the kernel's errno."""
    path = os.fspath(target)
    if _library().mount(source.encode(), os.fsencode(path), kind.encode(), flags, options.encode()) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), path)


def unmount(target: str | Path, *, lazy: bool = False) -> None:
    """umount2(2). ``lazy`` takes the name away at once, also while files are open."""
    path = os.fspath(target)
    if _library().umount2(os.fsencode(path), _MNT_DETACH if lazy else 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), path)


def sync_file_system(path: str | Path) -> None:
    """syncfs(2) of the file system that holds ``path``."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        if _library().syncfs(descriptor) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), os.fspath(path))
    finally:
        os.close(descriptor)


def sync_range(descriptor: int, offset: int, length: int) -> None:
    """sync_file_range(2), start the write and wait for it: data blocks only, no promise."""
    before_write_after = 1 | 2 | 4
    arguments = ctypes.c_int64(offset), ctypes.c_int64(length), ctypes.c_uint(before_write_after)
    if _library().sync_file_range(descriptor, *arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def commit(path: str | Path) -> bool:
    """Commit what btrfs has of changed metadata, as its clock does: no file's data is written for it.

    False on other file systems, where a stranger's fsync does the same.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        transaction = fcntl.ioctl(descriptor, _BTRFS_START_SYNC, bytes(8))
        fcntl.ioctl(descriptor, _BTRFS_WAIT_SYNC, transaction)
    except OSError as error:
        if error.errno != errno.ENOTTY:
            raise
        return False
    finally:
        os.close(descriptor)
    return True


def allocate(descriptor: int, size: int) -> None:
    """fallocate(2): the size becomes at least ``size``."""
    os.posix_fallocate(descriptor, 0, size)


def link_open(descriptor: int, path: str) -> None:
    """Give a file without a name (O_TMPFILE) its first one, by linkat(2) as open(2) describes."""
    top = os.open("/", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:  # with a directory given Python calls linkat and follows the link; without, it calls link, which does not
        os.link(f"/proc/self/fd/{descriptor}", path, src_dir_fd=top, follow_symlinks=True)
    finally:
        os.close(top)


def no_memory_deadlock() -> None:
    """Memory for this process is never won by writing to a disk that waits for this process.

    Best effort: a kernel before 5.6, or a caller that may not, keeps the small risk.
    """
    if sys.platform == "linux":
        _library().prctl(_PR_SET_IO_FLUSHER, 1, 0, 0, 0)


def attach(backing: int, *, label: str, block_bytes: int = 512) -> str:
    """Put the file ``backing`` under a free loop device, and give the device's path.

    Direct I/O, so that the file sees every write as the file system issued it. Nobody is left with
    the device open: then each unmount is its last close, at which the kernel drops all pages that it
    remembers of the device. A page of the last image that showed in the next one would look like a
    broken file system.
    """
    zeros = (0,) * 10
    name = label.encode()[-_FILE_NAME_BYTES:]
    configuration = _CONFIG.pack(backing, block_bytes, *zeros[:5], 0, 0, 0, _DIRECT_IO, name, b"", b"", *zeros)
    with open("/dev/loop-control", "rb", buffering=0) as control:
        for _ in range(_MOST_TRIES):
            path = f"/dev/loop{fcntl.ioctl(control, _LOOP_CTL_GET_FREE)}"
            device = os.open(path, os.O_RDWR | os.O_CLOEXEC)
            try:
                fcntl.ioctl(device, _LOOP_CONFIGURE, configuration)
            except OSError as error:
                if error.errno != errno.EBUSY:  # somebody else was quicker: ask for the next one
                    raise
            else:
                return path
            finally:
                os.close(device)
    text = f"no free loop device after {_MOST_TRIES} tries; see losetup -a"
    raise LabError(text)


def detach(device: str) -> None:
    """Free a loop device, at once or when its last user is gone. Nothing where it is free already."""
    descriptor = os.open(device, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.ioctl(descriptor, _LOOP_CLR_FD)
    except OSError as error:
        if error.errno != errno.ENXIO:
            raise
    finally:
        os.close(descriptor)


def label_of(device: str) -> str:
    """The label that :func:`attach` gave. Raises OSError where the device is free."""
    descriptor = os.open(device, os.O_RDONLY | os.O_CLOEXEC)
    try:
        status = fcntl.ioctl(descriptor, _LOOP_GET_STATUS, bytes(_STATUS_BYTES))
    finally:
        os.close(descriptor)
    return status[_NAME_AT : _NAME_AT + _FILE_NAME_BYTES + 1].partition(b"\0")[0].decode(errors="replace")
