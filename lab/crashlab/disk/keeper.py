"""The process that outlives the owner of a disk by a moment, to clean up after it.

It makes the disk (FUSE mount, server process, loop devices), hands the names of the devices to the
owner, and waits. When the owner ends, however it ends, it takes mounts, devices, server and folder
away. It has a session of its own, so that a Ctrl-C meant for the owner does not hit it.

Run as ``python -m crashlab.disk.keeper FOLDER SIZE DESCRIPTOR``.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
from typing import NoReturn

from crashlab.disk import kernel, wire
from crashlab.disk.server import Server
from crashlab.disk.sweep import FILES, PREFIX, clean, mounts

_LABEL = "crashlab-disk"


def main(folder: str, size: int, descriptor: int) -> int:
    """Make the disk in ``folder``, wait for the owner's end, clean up."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    owner = socket.socket(fileno=descriptor)
    server = 0
    lifeline: socket.socket | None = None
    try:
        server, lifeline = _start_server(folder, size)
        names = [_attach(f"{folder}/fuse/{name}", f"{os.path.basename(folder)}/{name}") for name in FILES]
        wire.send(owner, "ok", "\n".join(names).encode())
        while (message := wire.receive(owner)) is not None:  # the owner says "end", or is gone
            if message[0] == "end":
                break
    except OSError as error:
        with contextlib.suppress(OSError):
            wire.send(owner, "no", str(error).encode())
    _finish(folder, lifeline, server)
    with contextlib.suppress(OSError):
        wire.send(owner, "ok")
    return 0


def _attach(path: str, label: str) -> str:
    backing = os.open(path, os.O_RDWR | os.O_DIRECT | os.O_CLOEXEC)
    try:
        return kernel.attach(backing, label=label)
    finally:
        os.close(backing)


def _start_server(folder: str, size: int) -> tuple[int, socket.socket]:
    """Mount the FUSE file system and fork its server; the server's pid, and the line that it lives by."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(f"{folder}/control")
    listener.listen(64)
    device = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
    options = f"fd={device},rootmode=40000,user_id=0,group_id=0"
    kernel.mount(_LABEL, f"{folder}/fuse", f"fuse.{_LABEL}", options=options)
    ours, theirs = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        ours.close()
        _serve(device, theirs, listener, size)
    os.close(device)
    theirs.close()
    listener.close()
    ours.recv(1)  # it has left; or it has died, which the loop devices will tell
    return pid, ours


def _serve(device: int, keeper: socket.socket, listener: socket.socket, size: int) -> NoReturn:
    """The server's whole life. Ended by os._exit: the keeper's own cleaning must not run here."""
    code = 1
    try:
        kernel.no_memory_deadlock()
        _leave()
        keeper.send(b".")
        Server(device, keeper, listener, size).run()
        code = 0
    finally:
        os._exit(code)


def _leave() -> None:
    """Have no part in any disk's mounts. A namespace unmounts when its last process ends, and a server that was
    the last would wait, while it ends, for an answer of its own; then every sync(2) on the machine waits too.
    """
    kernel.private_mounts()
    for point in reversed(mounts()):
        if PREFIX in point:
            kernel.unmount(point, lazy=True)


def _finish(folder: str, lifeline: socket.socket | None, server: int) -> None:
    clean(folder)
    if lifeline is not None:
        lifeline.close()
    if server:
        os.waitpid(server, 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
