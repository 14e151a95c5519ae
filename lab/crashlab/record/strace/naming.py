"""Calls that change names and attributes.

What changed nothing is no op: a rename of one inode onto itself, a mode or an attribute that was there.
An exchange of two names (``RENAME_EXCHANGE``) is atomic and no sequence of ops is; it is noted, not told.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from crashlab import trace as t
from crashlab.record.strace.mirror import Where
from crashlab.record.strace.opening import made
from crashlab.record.strace.processes import Description

if TYPE_CHECKING:
    from collections.abc import Callable

    from crashlab.record.strace.decoder import Decoder
    from crashlab.record.strace.lines import Call
    from crashlab.record.strace.mirror import Node
    from crashlab.record.strace.processes import Process


def _name(decoder: Decoder, process: Process, call: Call, position: int, at: int | None) -> Where | None:
    where = decoder.where(process, call, position, at=at)
    assert not isinstance(where, Description)
    return where


def _make(kind: str, position: int, at: int | None) -> Callable[[Decoder, Process, Call], None]:
    def make(decoder: Decoder, process: Process, call: Call) -> None:
        where = _name(decoder, process, call, position, at)
        if where is None or where.path is None:
            return
        asked = call.args[position + 1]
        wanted = kind or next((name for name in _TYPES if name in asked), "S_IFREG")
        made_kind = _TYPES.get(wanted, wanted)
        if not made_kind:
            decoder.note(f"{where.path} is a device; the lab models files, directories, links, FIFOs and sockets")
            return
        made(decoder, process, where, made_kind, call.octal(position + 1) & ~process.surroundings.umask)

    return make


_TYPES = {"S_IFIFO": "fifo", "S_IFSOCK": "socket", "S_IFREG": "file", "S_IFCHR": "", "S_IFBLK": ""}


def _bind(decoder: Decoder, process: Process, call: Call) -> None:
    found = re.search(r'sun_path=("\d+")', call.args[1])
    if found is None:
        return  # no UNIX socket, or a name that is no file: it stands behind an @
    call.args.append(found[1])
    where = _name(decoder, process, call, len(call.args) - 1, None)
    if where is not None and where.path is not None:
        made(decoder, process, where, "socket", 0o777 & ~process.surroundings.umask)


def _symlink(position: int, at: int | None) -> Callable[[Decoder, Process, Call], None]:
    def make(decoder: Decoder, process: Process, call: Call) -> None:
        where = _name(decoder, process, call, position, at)
        if where is not None and where.path is not None:
            made(decoder, process, where, "symlink", 0o777, os.fsdecode(call.string(0) or b""))

    return make


def _link(decoder: Decoder, process: Process, call: Call) -> None:
    at = call.name == "linkat"
    target = _name(decoder, process, call, 3 if at else 1, 2 if at else None)
    if target is None or target.path is None or target.parent is None:
        return
    flags = call.flags(4) if at else set()
    source: Where | Description | None
    if "AT_EMPTY_PATH" in flags and not call.string(1):
        source = decoder.opened(process, call, 0)
    else:
        source = decoder.where(process, call, 1 if at else 0, at=0 if at else None, follow="AT_SYMLINK_FOLLOW" in flags)
    if source is None or source.node is None:
        decoder.note(f"{target.path} is a link to a file that this recorder has not seen being made")
        return
    decoder.tell_nameless(process, source.node)
    decoder.mirror.bind(target.parent, target.name, source.node)
    decoder.tell(process, t.Link, path=target.path, inode=source.node.number)


def _rename(decoder: Decoder, process: Process, call: Call) -> None:
    at = call.name != "rename"
    source = _name(decoder, process, call, 1 if at else 0, 0 if at else None)
    target = _name(decoder, process, call, 3 if at else 1, 2 if at else None)
    if source is None or target is None or source.path == target.path is None:
        return
    if source.path is None:
        decoder.note(f"{target.path} was moved in from {source.real}, outside of the traced places")
        return
    if {"RENAME_EXCHANGE", "RENAME_WHITEOUT"} & (call.flags(4) if at else set()):
        decoder.note(f"{source.path} and {target.path}: {call.args[4]} is not modelled")
        return
    if source.node is None or source.parent is None:
        decoder.note(f"{source.path} was made by something that this recorder does not see")
        return
    if source.node is target.node:
        return
    del source.parent.entries[source.name]
    if target.path is None:
        decoder.note_outside(target)
        _tell_gone(decoder, process, source, source.node)
        return
    assert target.parent is not None
    decoder.mirror.bind(target.parent, target.name, source.node)
    decoder.tell(process, t.Rename, path=source.path, inode=source.node.number, to=target.path)


def _remove(decoder: Decoder, process: Process, call: Call) -> None:
    at = call.name == "unlinkat"
    where = _name(decoder, process, call, 1 if at else 0, 0 if at else None)
    if where is None or where.path is None:
        return
    if where.node is None or where.parent is None:
        decoder.note(f"{where.path} was made by something that this recorder does not see")
        return
    del where.parent.entries[where.name]
    _tell_gone(decoder, process, where, where.node)


def _tell_gone(decoder: Decoder, process: Process, where: Where, node: Node) -> None:
    op_type = t.RemoveDirectory if node.kind == "directory" else t.Unlink
    decoder.tell(process, op_type, path=where.path, inode=node.number)


# --- attributes ------------------------------------------------------------------------------------


def _found(  # noqa: PLR0913 - where each call keeps its arguments
    decoder: Decoder, process: Process, call: Call, position: int, at: int | None = None, *, follow: bool = True
) -> tuple[Node, str] | None:
    """The node that a call acts on, and the path by which it was reached."""
    where = decoder.where(process, call, position, at=at, follow=follow)
    if where is None or where.path is None:
        return None
    if where.node is None:
        if isinstance(where, Where):
            decoder.note(f"{where.path} was made by something that this recorder does not see")
        return None
    return where.node, where.path


def _by_descriptor(decoder: Decoder, process: Process, call: Call) -> tuple[Node, str] | None:
    description = decoder.opened(process, call, 0)
    return None if description is None or description.node is None else (description.node, description.path)


def _chmod(decoder: Decoder, process: Process, call: Call) -> None:
    if call.name == "fchmod":
        found, mode = _by_descriptor(decoder, process, call), call.octal(1)
    elif call.name == "chmod":
        found, mode = _found(decoder, process, call, 0), call.octal(1)
    else:
        flags = call.flags(3)
        empty = "AT_EMPTY_PATH" in flags and not call.string(1)
        follow = "AT_SYMLINK_NOFOLLOW" not in flags
        found = _by_descriptor(decoder, process, call) if empty else _found(decoder, process, call, 1, 0, follow=follow)
        mode = call.octal(2)
    if found is not None and found[0].mode != mode & 0o7777 and found[0].kind != "symlink":
        found[0].mode = mode & 0o7777
        decoder.tell(process, t.Chmod, path=found[1], inode=found[0].number, mode=mode & 0o7777)


def _utimensat(decoder: Decoder, process: Process, call: Call) -> None:
    at = call.name != "utimes"
    position = 1 if at else 0
    if call.string(position) is None:
        found = _by_descriptor(decoder, process, call)
    else:
        follow = "AT_SYMLINK_NOFOLLOW" not in call.flags(3)
        found = _found(decoder, process, call, position, 0 if at else None, follow=follow)
    if found is None:
        return
    node, path = found
    time_ns = _time_ns(call, call.args[position + 1])
    if time_ns is not None and time_ns != node.mtime_ns:
        node.mtime_ns = time_ns
        decoder.tell(process, t.SetTimes, path=path, inode=node.number, mtime_ns=time_ns)


def _time_ns(call: Call, text: str) -> int | None:
    """The modification time that was set; None where it was left alone."""
    last = text.rpartition("{")[2]
    if "UTIME_OMIT" in text.rpartition("],")[2].rpartition(",")[2] or text.rstrip("]").endswith("UTIME_OMIT"):
        return None
    found = re.search(r"tv_sec=(-?\d+), tv_(n|u)sec=(\d+)", last)
    if found is None or text.rstrip("]").endswith("UTIME_NOW"):
        return call.time_ns
    return int(found[1]) * 1_000_000_000 + int(found[3]) * (1 if found[2] == "n" else 1000)


def _set_attribute(decoder: Decoder, process: Process, call: Call) -> None:
    if call.name.startswith("f"):
        found = _by_descriptor(decoder, process, call)
    else:
        found = _found(decoder, process, call, 0, follow=not call.name.startswith("l"))
    name = os.fsdecode(call.string(1) or b"")
    if found is None or not name.startswith("user."):
        return
    node, path = found
    value = None if "remove" in call.name else call.string(2) or b""
    if node.attributes.get(name) == value:
        return
    if value is None:
        del node.attributes[name]
    else:
        node.attributes[name] = value
    decoder.tell(process, t.SetAttribute, path=path, inode=node.number, name=name, value=value)


CALLS: dict[str, Callable[[Decoder, Process, Call], None]] = {
    "mkdir": _make("directory", 0, None),
    "mkdirat": _make("directory", 1, 0),
    "mknod": _make("", 0, None),
    "mknodat": _make("", 1, 0),
    "bind": _bind,
    "symlink": _symlink(1, None),
    "symlinkat": _symlink(2, 1),
    **dict.fromkeys(("link", "linkat"), _link),
    **dict.fromkeys(("rename", "renameat", "renameat2"), _rename),
    **dict.fromkeys(("unlink", "unlinkat", "rmdir"), _remove),
    **dict.fromkeys(("chmod", "fchmod", "fchmodat", "fchmodat2"), _chmod),
    **dict.fromkeys(("utimensat", "utimes", "futimesat"), _utimensat),
    **dict.fromkeys(
        ("setxattr", "lsetxattr", "fsetxattr", "removexattr", "lremovexattr", "fremovexattr"), _set_attribute
    ),
}
