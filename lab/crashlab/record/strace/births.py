"""Calls that make processes, change their surroundings, or do what this recorder cannot follow."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from crashlab.record.strace import mapped
from crashlab.record.strace.processes import Description

if TYPE_CHECKING:
    from collections.abc import Callable

    from crashlab.record.strace.decoder import Decoder
    from crashlab.record.strace.lines import Call
    from crashlab.record.strace.processes import Process


def _clone(decoder: Decoder, process: Process, call: Call) -> None:
    if call.child is None and call.result:
        decoder.born(process, call.result, call)


def _exec(decoder: Decoder, process: Process, _call: Call) -> None:
    memory = process.memory
    process.executed()
    mapped.left(decoder, process, memory)


def _chdir(decoder: Decoder, process: Process, call: Call) -> None:
    where = decoder.where(process, call, 0, follow=True)
    if isinstance(where, Description):
        process.surroundings.directory = where.node or where.real
    elif where is not None:
        process.surroundings.directory = where.real if where.node is None else where.node


def _fchdir(decoder: Decoder, process: Process, call: Call) -> None:
    process.surroundings.directory = decoder.place(process, call, 0)


def _umask(_decoder: Decoder, process: Process, call: Call) -> None:
    process.surroundings.umask = call.octal(0)


def _unshare(_decoder: Decoder, process: Process, call: Call) -> None:
    flags = set(re.findall(r"CLONE_\w+", call.text))
    if "CLONE_FILES" in flags:
        process.table = dict(process.table)
    if flags & {"CLONE_FS", "CLONE_NEWNS"}:
        process.surroundings = type(process.surroundings)(process.surroundings.directory, process.surroundings.umask)


def _blind(text: str) -> Callable[[Decoder, Process, Call], None]:
    def note(decoder: Decoder, _process: Process, call: Call) -> None:
        decoder.note(text.format(call.name))

    return note


_MOUNTS = "{} was called: paths may mean other files than the recorder takes them for"
_ASYNCHRONOUS = "{} was called: writes that the kernel does on its own time are not seen"

CALLS: dict[str, Callable[[Decoder, Process, Call], None]] = {
    **dict.fromkeys(("clone", "clone3", "fork", "vfork"), _clone),
    **dict.fromkeys(("execve", "execveat"), _exec),
    "chdir": _chdir,
    "fchdir": _fchdir,
    "umask": _umask,
    "unshare": _unshare,
    **dict.fromkeys(("chroot", "pivot_root", "mount", "umount2", "move_mount", "setns"), _blind(_MOUNTS)),
    **dict.fromkeys(("io_uring_setup", "io_submit"), _blind(_ASYNCHRONOUS)),
    "open_by_handle_at": _blind("{} was called: a file opened without a name is not followed"),
}
