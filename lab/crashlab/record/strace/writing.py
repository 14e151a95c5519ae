"""Calls that change the bytes of open files, and the barriers.

Bytes that the kernel moves by itself (sendfile, copy_file_range, a reflink) are taken from the source:
from the mirror where it lies below the root, else from disk, if the source has not changed since.
From a pipe they cannot be known, and that is noted.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from crashlab import trace as t
from crashlab.record.strace.processes import Description

if TYPE_CHECKING:
    from collections.abc import Callable

    from crashlab.record.strace.decoder import Decoder
    from crashlab.record.strace.lines import Call
    from crashlab.record.strace.processes import Process

_CLOCK_NS = 20_000_000
"""Inode times come from a clock that ticks every few milliseconds; a change this near is not told apart."""


def _written(decoder: Decoder, call: Call) -> bytes | None:
    data = b"".join(call.strings)
    assert call.result is not None
    if call.cut_short or len(data) < call.result:
        decoder.note(f"{call.name} of {call.result} bytes is more than strace shows")
        return None
    return data if len(data) == call.result else data[: call.result]


def _write(decoder: Decoder, process: Process, call: Call) -> None:
    _put(decoder, process, call, None, set())


def _pwrite(decoder: Decoder, process: Process, call: Call) -> None:
    _put(decoder, process, call, call.number(3), call.flags(4))


def _put(decoder: Decoder, process: Process, call: Call, offset: int | None, flags: set[str]) -> None:
    description = decoder.opened(process, call, 0)
    if description is None or not call.result:
        return
    if description.events:
        decoder.take_events(process, _written(decoder, call) or b"")
    if description.node is None or description.node.kind != "file":
        if offset is None:
            description.position += call.result
        return
    data = _written(decoder, call)
    if data is not None:
        _wrote(decoder, process, description, data, None if offset == -1 else offset, flags)


def _wrote(  # noqa: PLR0913, PLR0917 - the parts of one write
    decoder: Decoder, process: Process, description: Description, data: bytes, offset: int | None, flags: set[str]
) -> None:
    node = description.node
    assert node is not None
    moves = offset is None
    if "RWF_APPEND" in flags or (description.appends and "RWF_NOAPPEND" not in flags):
        offset = node.data.size  # also of pwrite: pwrite(2), BUGS
    elif offset is None:
        offset = description.position
    sync = description.sync
    if "RWF_SYNC" in flags:
        sync = "all"
    elif "RWF_DSYNC" in flags:
        sync = sync or "data"
    node.data.write(offset, data)
    node.mtime_ns = None
    if moves:
        description.position = offset + len(data)
    decoder.tell(process, t.Write, path=description.path, inode=node.number, offset=offset, data=data, sync=sync)


# --- bytes that the kernel moves -------------------------------------------------------------------


def _offset(call: Call, position: int) -> int | None:
    found = re.match(r"\[(\d+)", call.args[position])
    return None if found is None else int(found[1])


def _sendfile(decoder: Decoder, process: Process, call: Call) -> None:
    _move(decoder, process, call, (1, _offset(call, 2)), (0, None))


def _copy_file_range(decoder: Decoder, process: Process, call: Call) -> None:
    _move(decoder, process, call, (0, _offset(call, 1)), (2, _offset(call, 3)))


def _move(
    decoder: Decoder, process: Process, call: Call, source_at: tuple[int, int | None], target_at: tuple[int, int | None]
) -> None:
    source = decoder.opened(process, call, source_at[0], changing=False)
    target = decoder.opened(process, call, target_at[0])
    size, start = call.result or 0, source_at[1]
    if source is not None and start is None:
        start = source.position
        source.position += size
    if target is None or not size:
        return
    if target.node is None or target.node.kind != "file":
        if target_at[1] is None:
            target.position += size
        if target.events:
            decoder.note(f"events were moved into their file by {call.name}, whose bytes are not seen")
        return
    data = None
    if source is not None and start is not None and not (call.name != "copy_file_range" and source.node is target.node):
        # Into itself the pages are copied while they change (measured: sendfile); copy_file_range refuses an overlap.
        data = _moved(source, start, size, call.time_ns)
    if data is None:
        decoder.note(f"bytes that {call.name} moved into {target.path} are not seen")
        return
    _wrote(decoder, process, target, data, target_at[1], set())


def _moved(source: Description, offset: int, size: int, time_ns: int) -> bytes | None:
    """The bytes that a source had at a time; None where that cannot be told any more."""
    if source.node is not None:
        data = source.node.data.read(offset, size)
        return data if len(data) == size else None
    try:
        with open(source.real, "rb", buffering=0) as file:
            data = os.pread(file.fileno(), size, offset)
            changed = os.fstat(file.fileno()).st_ctime_ns
    except OSError:
        return None
    return data if len(data) == size and changed < time_ns - _CLOCK_NS else None


def _ioctl(decoder: Decoder, process: Process, call: Call) -> None:
    command = call.args[1]
    slot = process.table.get(call.number(0))
    if command in ("FIOCLEX", "FIONCLEX"):
        if slot is not None:
            slot.close_on_exec = command == "FIOCLEX"
        return
    if "FICLONE" not in command and "BTRFS_IOC_CLONE" not in command and "DEDUPE" not in command:
        return
    target = decoder.opened(process, call, 0)
    source_fd, start, size, offset = _clone_range(call)
    source = process.table.get(source_fd)
    if target is None or target.node is None:
        return
    if source is None or source.description.node is None or "DEDUPE" in command:
        decoder.note(f"bytes that a reflink put into {target.path} are not seen")
        return
    data = source.description.node.data
    data_bytes = data.read(start, size or data.size)
    if data_bytes:
        _wrote(decoder, process, target, data_bytes, offset, {"RWF_NOAPPEND"})


def _clone_range(call: Call) -> tuple[int, int, int, int]:
    if not call.args[2].startswith("{"):
        return call.number(2), 0, 0, 0
    found = dict(re.findall(r"(\w+)=(\d+)", call.args[2]))
    names = ("src_fd", "src_offset", "src_length", "dest_offset")
    source, start, size, offset = (int(found[name]) for name in names)
    return source, start, size, offset


def _splice(decoder: Decoder, process: Process, call: Call) -> None:
    _move(decoder, process, call, (0, _offset(call, 1)), (2, _offset(call, 3)))


# --- size ------------------------------------------------------------------------------------------


def _truncate(decoder: Decoder, process: Process, call: Call) -> None:
    where = decoder.where(process, call, 0, follow=True)
    if isinstance(where, Description):
        _resize(decoder, process, where, call.number(1))
    elif where is not None and where.path is None:
        decoder.note_outside(where)
    elif where is not None and where.path is not None:
        _resize(decoder, process, Description(where.node, where.path, where.real), call.number(1))


def _ftruncate(decoder: Decoder, process: Process, call: Call) -> None:
    description = decoder.opened(process, call, 0)
    if description is not None:
        _resize(decoder, process, description, call.number(1))


def _resize(decoder: Decoder, process: Process, description: Description, size: int) -> None:
    node = description.node
    if node is None or node.data.size == size:
        return
    node.data.truncate(size)
    node.mtime_ns = None
    decoder.tell(process, t.Truncate, path=description.path, inode=node.number, size=size)


def _fallocate(decoder: Decoder, process: Process, call: Call) -> None:
    description = decoder.opened(process, call, 0)
    if description is None or description.node is None:
        return
    node, offset = description.node, call.number(2)
    size, end = node.data.size, offset + call.number(3)
    flags = call.flags(1) - {"0"}
    keeps = "FALLOC_FL_KEEP_SIZE" in flags
    rest = flags - {"FALLOC_FL_KEEP_SIZE", "FALLOC_FL_PUNCH_HOLE", "FALLOC_FL_ZERO_RANGE"}
    if rest:
        decoder.note(f"fallocate of {description.path} with {'|'.join(sorted(rest))} is not modelled")
        return
    node.mtime_ns = None
    zeros = min(end, size) - offset
    if flags - {"FALLOC_FL_KEEP_SIZE"} and zeros > 0:
        data = bytes(zeros)
        node.data.write(offset, data)
        decoder.tell(process, t.Write, path=description.path, inode=node.number, offset=offset, data=data)
    if not keeps and end > size:
        node.data.truncate(end)
        decoder.tell(process, t.Allocate, path=description.path, inode=node.number, size=end)


# --- barriers --------------------------------------------------------------------------------------


def _fsync(decoder: Decoder, process: Process, call: Call) -> None:
    description = decoder.opened(process, call, 0)
    if description is not None and description.node is not None:
        node = description.node
        node.stored.clear()
        only = call.name == "fdatasync"
        decoder.tell(process, t.Fsync, path=description.path, inode=node.number, data_only=only)


def _sync(decoder: Decoder, process: Process, call: Call) -> None:
    if call.name == "syncfs":
        description = decoder.opened(process, call, 0, changing=False)
        place = call.told_path(0) if description is None else description.real
        if description is None or description.node is None:
            try:
                if os.stat(place).st_dev != os.stat(decoder.mirror.root).st_dev:
                    return
            except OSError:
                decoder.note("syncfs was called on something that cannot be looked at any more")
                return
    decoder.tell(process, t.Sync)


CALLS: dict[str, Callable[[Decoder, Process, Call], None]] = {
    **dict.fromkeys(("write", "writev"), _write),
    **dict.fromkeys(("pwrite64", "pwritev", "pwritev2"), _pwrite),
    "sendfile": _sendfile,
    "copy_file_range": _copy_file_range,
    "splice": _splice,
    "ioctl": _ioctl,
    "truncate": _truncate,
    "ftruncate": _ftruncate,
    "fallocate": _fallocate,
    **dict.fromkeys(("fsync", "fdatasync"), _fsync),
    **dict.fromkeys(("sync", "syncfs"), _sync),
}
