"""The process that is the disk: it answers the kernel on ``/dev/fuse`` and its controllers on a socket.

It never touches a file of a mounted file system: such a call would wait for itself. It ends when
its keeper ends; the kernel then answers every open request with an error, so nothing hangs.
"""

from __future__ import annotations

import errno
import os
import select
import struct
import time
from typing import TYPE_CHECKING

from crashlab.disk import fuse, log, wire
from crashlab.disk.blocks import Blocks, Live, Shown, load, read, write
from crashlab.disk.log import BLOCK_BYTES
from crashlab.disk.sweep import FILES

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

LIVE, SHOWN = 2, 3
NODES = dict(zip(FILES, (LIVE, SHOWN), strict=True))
_IMAGE = struct.Struct("<qqI")
_PIECE = struct.Struct("<III")
_SEND_LIMIT_S = 30.0


def image_message(image: log.Image) -> bytes:
    """The body of the command ``show``."""
    pieces = b"".join(_PIECE.pack(*piece) for piece in image.pieces)
    return _IMAGE.pack(image.run, image.floor, len(image.pieces)) + pieces


class Server:
    """Both disks, the kernel's requests and the controllers' commands, one at a time."""

    def __init__(self, device: int, keeper: socket.socket, listener: socket.socket, size: int) -> None:
        self._device, self._keeper, self._listener, self._size = device, keeper, listener, size
        self._connections: dict[int, socket.socket] = {}
        self._live, self._shown = Live(self._written), Shown()
        self._saved: Blocks = {}
        self._poll = select.poll()
        self._buffer = bytearray(fuse.REQUEST_BYTES)
        self._view = memoryview(self._buffer)

    def run(self) -> None:
        """Serve until the keeper has gone, or the kernel has closed both disks."""
        os.set_blocking(self._device, False)
        for descriptor in (self._device, self._keeper.fileno(), self._listener.fileno()):
            self._poll.register(descriptor, select.POLLIN)
        due: float | None = None
        while True:
            wait_ms = None if due is None else max(0.0, due - time.monotonic()) * 1000
            ready = self._poll.poll(wait_ms)
            if due is not None:
                due = self._live.release(time.monotonic())
            for descriptor, _ in ready:
                if descriptor == self._device:
                    if not self._requests():
                        return
                elif descriptor == self._keeper.fileno():
                    return
                elif descriptor == self._listener.fileno():
                    self._accept()
                else:
                    self._command(self._connections[descriptor])
            due = self._live.release(time.monotonic())

    # --- the kernel ------------------------------------------------------------------------------

    def _requests(self) -> bool:
        """Answer what the kernel asks now; False once it has closed the connection."""
        try:
            length = os.readv(self._device, [self._buffer])
        except OSError as error:
            if error.errno in (errno.EAGAIN, errno.EINTR, errno.ENOENT):  # ENOENT: taken back meanwhile
                return True
            if error.errno == errno.ENODEV:
                return False
            raise
        request = fuse.request_of(self._view[:length])
        if request.opcode == fuse.READ:
            offset, size, _ = fuse.transfer_of(request.body)
            disk = self._live.blocks if request.node == LIVE else self._shown.blocks
            self._reply(fuse.reply(request.unique, read(disk, offset, size)))
        elif request.opcode == fuse.WRITE:
            offset, size, data = fuse.transfer_of(request.body)
            if request.node == LIVE:
                self._live.write(request.unique, offset, bytes(data))
            else:
                write(self._shown.blocks, offset, bytes(data))
                self._written(request.unique, size, 0)
        elif request.opcode not in fuse.WITHOUT_REPLY:
            self._seldom(request)
        return True

    def _seldom(self, request: fuse.Request) -> None:
        payload, error = b"", 0
        match request.opcode:
            case fuse.FSYNC:
                if request.node == LIVE:
                    self._live.flush()
            case fuse.INIT:
                payload = fuse.init_payload(request.body)
            case fuse.LOOKUP:
                node = NODES.get(bytes(request.body).rstrip(b"\0").decode(errors="replace"), 0)
                payload, error = (fuse.entry_payload(node, self._size), 0) if node else (b"", errno.ENOENT)
            case fuse.GETATTR:
                payload = fuse.attributes_payload(request.node, self._size if request.node in (LIVE, SHOWN) else 0)
            case fuse.OPEN:
                payload = fuse.open_payload()
            case fuse.STATFS:
                payload = fuse.statfs_payload()
            case fuse.FLUSH | fuse.RELEASE | fuse.DESTROY:
                payload = b""
            case _:
                error = errno.ENOSYS
        self._reply(fuse.reply(request.unique, payload, error))

    def _written(self, unique: int, size: int, error: int) -> None:
        self._reply(fuse.reply(unique, b"" if error else fuse.written_payload(size), error))

    def _reply(self, message: bytes) -> None:
        try:
            os.write(self._device, message)
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ENODEV):  # the request was taken back, or the kernel has gone
                raise

    # --- the controllers -------------------------------------------------------------------------

    def _accept(self) -> None:
        connection, _ = self._listener.accept()
        connection.settimeout(_SEND_LIMIT_S)
        self._connections[connection.fileno()] = connection
        self._poll.register(connection, select.POLLIN)

    def _command(self, connection: socket.socket) -> None:
        try:
            message = wire.receive(connection)
            if message is not None:
                wire.send(connection, *self._obey(*message))
                return
        except OSError:  # a controller that died in the middle of a word is gone, nothing more
            message = None
        self._poll.unregister(connection)
        del self._connections[connection.fileno()]
        connection.close()

    def _obey(self, word: str, body: bytes) -> tuple[str, bytes]:
        commands: dict[str, Callable[[bytes], bytes | None]] = {
            "mark": lambda body: self._live.mark(*struct.unpack("<q", body)),
            "show": self._show,
            "begin": lambda _: self._live.begin(),
            "log": lambda _: struct.pack("<q", self._live.run) + log.pack(self._live.entries),
            "hold": lambda body: self._hold(*struct.unpack("<d", body)),
            "fail": lambda body: self._fail(on=body == b"1"),
            "known": self._known,
            "load": lambda body: self._live.restore(load(os.fsdecode(body))),
            "save": lambda _: self._save(),
            "restore": lambda _: self._live.restore(self._saved),
        }
        if word not in commands:
            return "no", f"unknown command {word!r}".encode()
        try:
            return "ok", commands[word](body) or b""
        except (OSError, ValueError, struct.error) as error:
            return "no", str(error).encode()

    def _show(self, body: bytes) -> None:
        run, floor, count = _IMAGE.unpack_from(body)
        if run != self._live.run:
            text = f"the image is of run {run}, and the disk is at run {self._live.run}"
            raise ValueError(text)
        pieces = _PIECE.iter_unpack(body[_IMAGE.size :])
        self._shown.show(self._live, floor, pieces)
        assert count >= 0

    def _hold(self, seconds: float) -> None:
        self._live.held_for_s = seconds
        if not seconds:
            self._live.release()

    def _fail(self, *, on: bool) -> None:
        self._live.failing = on

    def _known(self, body: bytes) -> None:
        self._live.known = frozenset(body[at : at + BLOCK_BYTES] for at in range(0, len(body), BLOCK_BYTES))

    def _save(self) -> None:
        self._saved = dict(self._live.blocks)
