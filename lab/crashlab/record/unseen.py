"""Ways of writing that this recorder can notice but not see into: children, shared mappings.

A child process is noted when it is started; the fork of a subject records nothing. A mapping that
is shared and writable is noted when it is made. The bind of a socket to a path, which makes a
name, is recorded as an op.
"""

from __future__ import annotations

import mmap
import os
import socket
from typing import TYPE_CHECKING, Any, Self

from crashlab.record.names import making

if TYPE_CHECKING:
    from collections.abc import Callable

    from crashlab.record.patch import Switch
    from crashlab.record.watch import Plan, Planner, Watch

REAL_MMAP = mmap.mmap
_REAL_BIND = socket.socket.bind
_READ_OR_COPY = (mmap.ACCESS_READ, mmap.ACCESS_COPY)


def _fork(watch: Watch, _real: Any) -> None:
    watch.note("a child process was started: os.fork")


def _command(watch: Watch, _real: Any, command: Any) -> None:
    watch.note(f"a child process was started: {_shown(command)}")


def _spawn(watch: Watch, _real: Any, path: Any, argv: Any, *_rest: Any, **_options: Any) -> None:
    watch.note(f"a child process was started: {_shown(argv) or _shown(path)}")


def _fork_exec(watch: Watch, _real: Any, argv: Any, *_rest: Any) -> None:
    watch.note(f"a child process was started: {_shown(argv)}")


def _shown(command: Any) -> str:
    if isinstance(command, (list, tuple)):
        return " ".join(_shown(part) for part in command)
    return os.fsdecode(command)


OS_CALLS: dict[str, Planner] = {
    "fork": _fork,
    "forkpty": _fork,
    "system": _command,
    "posix_spawn": _spawn,
    "posix_spawnp": _spawn,
    "execv": _spawn,
    "execve": _spawn,
}
SUBPROCESS_CALLS: dict[str, Planner] = {"fork_exec": _fork_exec}


def mapping_type(switch: Switch) -> type:
    """``mmap.mmap``, noting shared writable mappings of traced files."""

    class Mapping(REAL_MMAP):
        __doc__ = REAL_MMAP.__doc__

        def __new__(cls, *args: Any, **kwargs: Any) -> Self:
            made = REAL_MMAP.__new__(cls, *args, **kwargs)
            watch = switch.watch
            if watch is not None:
                watch.run(_note_mapping, lambda *_args, **_kwargs: None, args, kwargs)
            return made

    Mapping.__name__ = Mapping.__qualname__ = "mmap"
    Mapping.__module__ = "mmap"
    return Mapping


def _note_mapping(
    watch: Watch,
    _real: Any,
    fileno: int,
    _length: int,
    flags: int = getattr(mmap, "MAP_SHARED", 1),
    prot: int = getattr(mmap, "PROT_WRITE", 2),
    access: int = mmap.ACCESS_DEFAULT,
    **_options: Any,
) -> None:
    shared = flags & getattr(mmap, "MAP_SHARED", 1) and prot & getattr(mmap, "PROT_WRITE", 2)
    if fileno == -1 or access in _READ_OR_COPY or not shared:
        return
    file = watch.by_descriptor(fileno)
    if file is not None:
        watch.note(f"{file.path} was mapped into memory, shared and writable")


def _bind(watch: Watch, _real: Any, bound: socket.socket, address: Any) -> Plan | None:
    if bound.family != getattr(socket, "AF_UNIX", None) or os.fsencode(address)[:1] in (b"", b"\0"):
        return None  # a network address, or Linux's abstract name, which is no file
    return making(watch, watch.places.resolve(address))


def bind_method(switch: Switch) -> Callable[..., Any]:
    """``socket.socket.bind``, recording the name that a UNIX socket makes."""

    def bind(self: socket.socket, *args: Any) -> Any:
        watch = switch.watch
        if watch is None:
            return _REAL_BIND(self, *args)
        return watch.run(_bind, _REAL_BIND, (self, *args), {})

    bind.__doc__ = _REAL_BIND.__doc__
    return bind
