"""Calls that change the bytes of open files, and the barriers: the write family, truncation, allocation, fsync.

Data is copied before the call and the copy is what the real call gets, so that a buffer that
another thread changes meanwhile cannot make the trace differ from the disk; but O_DIRECT needs the
memory that the subject aligned. Bytes that the kernel
moves by itself (sendfile, copy_file_range, splice, a reflink) are read back from the target, on
Linux only; elsewhere these calls do not write to files.
"""

from __future__ import annotations

import errno
import os
import select
import sys
from typing import TYPE_CHECKING, Any

from crashlab import trace as t
from crashlab.record.patch import REAL
from crashlab.record.watch import Change, Known, Plan, Planner, Watch, write_sync

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

try:
    import fcntl
except ImportError:  # Windows
    FULL_SYNC, CLONE = None, None
else:
    FULL_SYNC = getattr(fcntl, "F_FULLFSYNC", 51 if sys.platform == "darwin" else None)  # <sys/fcntl.h>
    CLONE = getattr(fcntl, "FICLONE", 0x40049409 if sys.platform == "linux" else None)  # <linux/fs.h>

_WRITE_ALL, _WRITE_DATA, _WRITE_APPEND = (getattr(os, name, 0) for name in ("RWF_SYNC", "RWF_DSYNC", "RWF_APPEND"))
_DIRECT = getattr(os, "O_DIRECT", 0)
_PIECE_BYTES = 1 << 20


def copy_of(data: Any) -> bytes:
    """The bytes of a buffer. Raises BufferError for one that the real call would refuse too."""
    view = memoryview(data)
    if not view.c_contiguous:
        text = "memoryview: underlying buffer is not C-contiguous"
        raise BufferError(text)
    return bytes(view)


def wrote(file: Known, data: bytes, offset: int | None = None, flags: int = 0) -> Iterable[Change]:
    """The op of ``data`` that has just been written at ``offset``, or at the position of the descriptor."""
    if not data:
        return ()
    assert isinstance(file.place, int)
    now = file.now()
    appends, sync = write_sync(file.place)
    if flags & _WRITE_APPEND or (appends and offset is not None and sys.platform == "linux"):
        offset = now.st_size - len(data)  # pwrite to an O_APPEND descriptor appends on Linux: pwrite(2), BUGS
    elif offset is None:
        offset = os.lseek(file.place, 0, os.SEEK_CUR) - len(data)  # also right for O_APPEND
    if flags & _WRITE_ALL:
        sync = "all"
    elif flags & _WRITE_DATA:
        sync = sync or "data"
    fields = {"offset": offset, "data": data, "sync": sync, "time_ns": now.st_mtime_ns}
    return ((t.Write, file.fields | fields),)


def sending(file: Known, data: bytes, send: Callable[[bytes], int | None]) -> Plan | None:
    """A write of ``data`` at the descriptor's position. ``send`` returns how much it wrote."""
    if not data:
        return None
    return Plan(
        call=None if _is_direct(file) else lambda: send(data),
        done=lambda sent: wrote(file, data[: sent or 0]),
        part=lambda size: send(data[:size]),
        length=len(data),
    )


def _is_direct(file: Known) -> bool:
    assert isinstance(file.place, int)
    return bool(_DIRECT) and bool(REAL.fcntl(file.place, fcntl.F_GETFL) & _DIRECT)


def _write(watch: Watch, real: Any, fd: int, data: Any, /) -> Plan | None:
    file = watch.by_descriptor(fd)
    return None if file is None else sending(file, copy_of(data), lambda part: real(fd, part))


def _writev(watch: Watch, real: Any, fd: int, buffers: Any, /) -> Plan | None:
    file = watch.by_descriptor(fd)
    if file is None or not hasattr(buffers, "__getitem__"):
        return None
    copies = [copy_of(data) for data in buffers]
    data = b"".join(copies)
    plan = sending(file, data, lambda part: real(fd, [part]))
    if plan is not None:
        plan.call = plan.call and (lambda: real(fd, copies))
    return plan


def _pwrite(watch: Watch, real: Any, fd: int, data: Any, offset: int, /) -> Plan | None:
    file = watch.by_descriptor(fd)
    if file is None:
        return None
    copy = copy_of(data)
    return Plan(
        call=None if _is_direct(file) else lambda: real(fd, copy, offset),
        done=lambda sent: wrote(file, copy[:sent], offset),
        part=lambda size: real(fd, copy[:size], offset),
        length=len(copy),
    )


def _pwritev(watch: Watch, real: Any, fd: int, buffers: Any, offset: int, /, *flags: int) -> Plan | None:
    file = watch.by_descriptor(fd)
    if file is None or not hasattr(buffers, "__getitem__"):
        return None
    copies = [copy_of(data) for data in buffers]
    data = b"".join(copies)
    return Plan(
        call=None if _is_direct(file) else lambda: real(fd, copies, offset, *flags),
        done=lambda sent: wrote(file, data[:sent], offset, sum(flags)),
        part=lambda size: real(fd, [data[:size]], offset, *flags),
        length=len(data),
    )


# --- bytes that the kernel moves -------------------------------------------------------------------


def _moving(watch: Watch, file: Known, move: Callable[[int], int], count: int, offset: int | None = None) -> Plan:
    def done(moved: int) -> Iterable[Change]:
        assert isinstance(file.place, int)
        start = os.lseek(file.place, 0, os.SEEK_CUR) - moved if offset is None else offset
        data = _read_back(watch, file, start, moved)
        return () if data is None else wrote(file, data, start)

    return Plan(call=lambda: move(count), done=done, part=move, length=count)


def _read_back(watch: Watch, file: Known, offset: int, size: int) -> bytes | None:
    try:
        descriptor = REAL.open(f"/proc/self/fd/{file.place}", os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        watch.note(f"bytes that the kernel copied into {file.path} could not be read back: {error}")
        return None
    try:
        pieces: list[bytes] = []
        while size > 0 and (piece := os.pread(descriptor, min(size, _PIECE_BYTES), offset)):
            pieces.append(piece)
            offset, size = offset + len(piece), size - len(piece)
        return b"".join(pieces)
    finally:
        REAL.close(descriptor)


def _sendfile(  # noqa: PLR0913, PLR0917 - the arguments of os.sendfile
    watch: Watch, real: Any, out_fd: int, in_fd: int, offset: int | None, count: int
) -> Plan | None:
    file = watch.by_descriptor(out_fd)
    return None if file is None else _moving(watch, file, lambda size: real(out_fd, in_fd, offset, size), count)


def _copy_file_range(  # noqa: PLR0913, PLR0917 - the arguments of os.copy_file_range
    watch: Watch,
    real: Any,
    src: int,
    dst: int,
    count: int,
    offset_src: int | None = None,
    offset_dst: int | None = None,
) -> Plan | None:
    file = watch.by_descriptor(dst)
    if file is None:
        return None
    return _moving(watch, file, lambda size: real(src, dst, size, offset_src, offset_dst), count, offset_dst)


def _splice(watch: Watch, real: Any, src: int, dst: int, count: int, *rest: Any, **options: Any) -> Plan | None:
    file = watch.by_descriptor(dst)
    if file is None:
        return None
    offset = options.get("offset_dst", rest[1] if len(rest) > 1 else None)
    plan = _moving(watch, file, lambda size: real(src, dst, size, *rest, **options), count, offset)
    poll = select.poll()
    poll.register(src, select.POLLIN)
    if not os.get_blocking(src) or poll.poll(0):
        return plan

    def wait_then_move() -> Any:
        poll.poll()  # for a pipe that is still empty: without the lock, or its writer could wait for us
        return watch.run(_splice, real, (src, dst, count, *rest), options)

    return Plan(call=wait_then_move, done=lambda _: (), locked=False)


def _ioctl(watch: Watch, _real: Any, fd: Any, request: int, arg: Any = 0, /, *_rest: Any) -> Plan | None:
    if request != CLONE:
        return None
    file = watch.by_descriptor(descriptor_of(fd))
    if file is None:
        return None
    size = os.stat(arg).st_size

    def done(_: Any) -> Iterable[Change]:
        data = _read_back(watch, file, 0, size)
        return () if data is None else wrote(file, data, 0)

    return Plan(done)


def _fcopyfile(watch: Watch, _real: Any, _in_fd: int, out_fd: int, _flags: int, /) -> Plan | None:
    """The copy that shutil uses on macOS. Refused for a traced file, so that shutil copies by hand."""
    if watch.by_descriptor(out_fd) is None:
        return None

    def refuse() -> Any:
        raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP))

    return Plan(call=refuse, done=lambda _: ())


# --- size ------------------------------------------------------------------------------------------


def resizing(file: Known) -> Plan:
    """A truncation; one that leaves the size as it is changes nothing."""

    def done(_: Any) -> Iterable[Change]:
        now = file.now()
        if now.st_size == file.before.st_size:
            return ()
        return ((t.Truncate, file.fields | {"size": now.st_size, "time_ns": now.st_mtime_ns}),)

    return Plan(done)


def _ftruncate(watch: Watch, _real: Any, fd: int, _length: int, /) -> Plan | None:
    file = watch.by_descriptor(fd)
    return None if file is None else resizing(file)


def _truncate(watch: Watch, _real: Any, path: Any, length: int) -> Plan | None:
    if isinstance(path, int):
        return _ftruncate(watch, _real, path, length)
    target = watch.places.resolve(path, follow=True)
    if target.path is None:
        return Plan(lambda _: watch.note_outside(target), locked=False)
    file = watch.by_target(target)
    return None if file is None else resizing(file)


def _allocate(watch: Watch, _real: Any, fd: int, _offset: int, _length: int, /) -> Plan | None:
    file = watch.by_descriptor(fd)
    if file is None:
        return None

    def done(_: Any) -> Iterable[Change]:
        now = file.now()
        if now.st_size == file.before.st_size:
            return ()
        return ((t.Allocate, file.fields | {"size": now.st_size, "time_ns": now.st_mtime_ns}),)

    return Plan(done)


# --- barriers --------------------------------------------------------------------------------------


def descriptor_of(file: Any) -> int:
    """The descriptor of a number or of anything with ``fileno``."""
    number = file if isinstance(file, int) else file.fileno()
    assert isinstance(number, int)
    return number


def _barrier(watch: Watch, fd: Any, **fields: bool) -> Plan | None:
    node = watch.by_descriptor(descriptor_of(fd), directories=True)
    return None if node is None else Plan(lambda _: ((t.Fsync, node.fields | fields),))


def _fsync(watch: Watch, _real: Any, fd: Any) -> Plan | None:
    return _barrier(watch, fd)


def _fdatasync(watch: Watch, _real: Any, fd: Any) -> Plan | None:
    return _barrier(watch, fd, data_only=True)


def _fcntl(watch: Watch, _real: Any, fd: Any, cmd: int, /, *_rest: Any) -> Plan | None:
    if FULL_SYNC is None or cmd != FULL_SYNC:
        return None
    return _barrier(watch, fd, full=True)


def _sync(_watch: Watch, _real: Any) -> Plan:
    return Plan(lambda _: ((t.Sync, {}),))


OS_CALLS: dict[str, Planner] = {
    "write": _write,
    "writev": _writev,
    "pwrite": _pwrite,
    "pwritev": _pwritev,
    "sendfile": _sendfile,
    "copy_file_range": _copy_file_range,
    "splice": _splice,
    "ftruncate": _ftruncate,
    "truncate": _truncate,
    "posix_fallocate": _allocate,
    "fsync": _fsync,
    "fdatasync": _fdatasync,
    "sync": _sync,
}
POSIX_CALLS: dict[str, Planner] = {"_fcopyfile": _fcopyfile}
FCNTL_CALLS: dict[str, Planner] = {"fcntl": _fcntl, "ioctl": _ioctl}
