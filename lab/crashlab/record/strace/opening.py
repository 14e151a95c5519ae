"""Calls that open, copy and close descriptors, and move the position of an open file."""

from __future__ import annotations

import copy
import re
from typing import TYPE_CHECKING

from crashlab import trace as t
from crashlab.errors import UsageError
from crashlab.events import NOT_APPENDED
from crashlab.record.strace.processes import Description, Slot

if TYPE_CHECKING:
    from collections.abc import Callable

    from crashlab.record.strace.decoder import Decoder
    from crashlab.record.strace.lines import Call
    from crashlab.record.strace.mirror import Node, Where
    from crashlab.record.strace.processes import Process

_WRITING = {"O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC"}


def _open(decoder: Decoder, process: Process, call: Call) -> None:
    _opened(decoder, process, call, 0, None, call.flags(1), call.octal(2) if len(call.args) > 2 else 0)  # noqa: PLR2004 - the mode


def _openat(decoder: Decoder, process: Process, call: Call) -> None:
    _opened(decoder, process, call, 1, 0, call.flags(2), call.octal(3) if len(call.args) > 3 else 0)  # noqa: PLR2004 - the mode


def _openat2(decoder: Decoder, process: Process, call: Call) -> None:
    flags = re.search(r"flags=([\w|]+)", call.args[2])
    mode = re.search(r"mode=([0-7]+)", call.args[2])
    if re.search(r"RESOLVE_IN_ROOT", call.args[2]):
        decoder.note("openat2 with RESOLVE_IN_ROOT was called: its path is not followed")
        return
    _opened(decoder, process, call, 1, 0, set(flags[1].split("|")) if flags else set(), int(mode[1], 8) if mode else 0)


def _creat(decoder: Decoder, process: Process, call: Call) -> None:
    _opened(decoder, process, call, 0, None, {"O_WRONLY", "O_CREAT", "O_TRUNC"}, call.octal(1))


def _opened(  # noqa: PLR0913, PLR0917 - where each of the four calls keeps its arguments
    decoder: Decoder, process: Process, call: Call, position: int, at: int | None, flags: set[str], mode: int
) -> None:
    assert call.result is not None
    process.table.pop(call.result, None)
    exclusive = "O_NOFOLLOW" in flags or {"O_CREAT", "O_EXCL"} <= flags
    where = decoder.where(process, call, position, at=at, follow=not exclusive)
    if where is None:
        return
    if isinstance(where, Description):
        description = Description(where.node, where.path, where.real, flags, events=where.events)
    elif where.path is None:
        description = _outside(decoder, where, flags)
    elif "O_TMPFILE" in flags:
        node = decoder.mirror.new("file", mode & ~process.surroundings.umask)
        decoder.new_nameless(process, node)
        description = Description(node, "", "", flags)
    else:
        found = _found(decoder, process, where, flags, mode)
        if found is None:
            return
        description = Description(found, where.path, where.real, flags)
    process.table[call.result] = Slot(description, "O_CLOEXEC" in flags)
    opened = description.node
    if opened is not None and opened.kind == "file" and "O_TRUNC" in flags and opened.data.size:
        opened.data.truncate(0)
        decoder.tell(process, t.Truncate, path=description.path, inode=opened.number, size=0)


def _outside(decoder: Decoder, where: Where, flags: set[str]) -> Description:
    events = decoder.is_events(where.real)
    if events and "O_TRUNC" in flags:
        raise UsageError(NOT_APPENDED)
    if flags & _WRITING and not events and decoder.is_regular(where.real):
        decoder.note_outside(where)
    return Description(None, "", where.real, flags, events=events)


def _found(decoder: Decoder, process: Process, where: Where, flags: set[str], mode: int) -> Node | None:
    if where.node is not None:
        return where.node
    if "O_CREAT" not in flags or where.parent is None or where.path is None:
        decoder.note(f"{where.path} was made by something that this recorder does not see")
        return None
    return made(decoder, process, where, "file", mode & ~process.surroundings.umask)


def made(  # noqa: PLR0913, PLR0917 - what every new node has
    decoder: Decoder, process: Process, where: Where, kind: str, mode: int, target: str = ""
) -> Node:
    """Tell that a new node of ``kind`` has the name ``where``."""
    assert where.path is not None
    assert where.parent is not None
    if where.parent.mode & 0o2000 and kind == "directory":
        mode |= 0o2000  # a directory in a set-group-id directory becomes one: inode(7)
    node = decoder.mirror.new(kind, mode, target)
    node.path = where.path
    decoder.mirror.bind(where.parent, where.name, node)
    common = {"path": where.path, "inode": node.number}
    if kind == "file":
        decoder.tell(process, t.Create, **common, mode=mode)
    elif kind == "directory":
        decoder.tell(process, t.MakeDirectory, **common, mode=mode)
    elif kind == "symlink":
        decoder.tell(process, t.MakeSymlink, **common, target=target)
    else:
        decoder.tell(process, t.MakeSpecial, **common, type=kind, mode=mode)
    return node


# --- descriptors -----------------------------------------------------------------------------------


def _close(_decoder: Decoder, process: Process, call: Call) -> None:
    process.table.pop(call.number(0), None)


def _close_range(_decoder: Decoder, process: Process, call: Call) -> None:
    flags = call.flags(2)
    if "CLOSE_RANGE_UNSHARE" in flags:
        process.table = {fd: copy.copy(slot) for fd, slot in process.table.items()}
    for fd in [fd for fd in process.table if call.number(0) <= fd <= call.number(1)]:
        if "CLOSE_RANGE_CLOEXEC" in flags:
            process.table[fd].close_on_exec = True
        else:
            del process.table[fd]


def _dup(_decoder: Decoder, process: Process, call: Call) -> None:
    source = process.table.get(call.number(0))
    assert call.result is not None
    if call.name == "dup2" and call.result == call.number(0):
        return
    if source is None:
        process.table.pop(call.result, None)
    else:
        process.table[call.result] = Slot(source.description, "O_CLOEXEC" in call.args[-1])


def _fcntl(decoder: Decoder, process: Process, call: Call) -> None:
    slot, command = process.table.get(call.number(0)), call.args[1]
    assert call.result is not None
    if command in ("F_DUPFD", "F_DUPFD_CLOEXEC"):
        process.table.pop(call.result, None)
        if slot is not None:
            process.table[call.result] = Slot(slot.description, command == "F_DUPFD_CLOEXEC")
    elif slot is None:
        if command == "F_SETFL" and "O_APPEND" in call.flags(2):
            decoder.opened(process, call, 0)
    elif command == "F_SETFD":
        slot.close_on_exec = "FD_CLOEXEC" in call.args[2]
    elif command == "F_SETFL":
        kept = slot.description.flags - {"O_APPEND", "O_DIRECT"}
        slot.description.flags = kept | (call.flags(2) & {"O_APPEND", "O_DIRECT"})


def _lseek(_decoder: Decoder, process: Process, call: Call) -> None:
    slot = process.table.get(call.number(0))
    if slot is not None and call.result is not None:
        slot.description.position = call.result


def _read_at(decoder: Decoder, process: Process, call: Call) -> None:
    """Of preadv2, which reads from the position where its offset is -1, and moves it."""
    if call.number(3) == -1:
        _read(decoder, process, call)


def _read(_decoder: Decoder, process: Process, call: Call) -> None:
    slot = process.table.get(call.number(0))
    if slot is not None and call.result is not None:
        slot.description.position += call.result


CALLS: dict[str, Callable[[Decoder, Process, Call], None]] = {
    "open": _open,
    "openat": _openat,
    "openat2": _openat2,
    "creat": _creat,
    "close": _close,
    "close_range": _close_range,
    **dict.fromkeys(("dup", "dup2", "dup3"), _dup),
    "fcntl": _fcntl,
    "lseek": _lseek,
    **dict.fromkeys(("read", "readv"), _read),
    "preadv2": _read_at,
}
