"""How the processes of the lab talk: JSON objects in frames, over socket pairs; nothing is ever pickled.

A frame is eight bytes of length and one JSON object in ASCII. Servers and workers block on their
one socket (:func:`send`, :func:`receive`); the main process never blocks on one of many: it uses a
:class:`Channel`. A child process answers in JSON lines through a pipe; :class:`Lines` cuts them.
"""

from __future__ import annotations

import contextlib
import json
import selectors
import socket
import struct
import time
from typing import Any

from crashlab.errors import Disturbed, LabError

_LENGTH = struct.Struct(">Q")
FRAME_LIMIT_BYTES = 1 << 32  # a length beyond this is no length but noise
LINE_LIMIT_BYTES = 16 << 20
_READ_BYTES = 1 << 18

Message = dict[str, Any]

BOOTSTRAP = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "import importlib; importlib.import_module(sys.argv[2]).main()"
)
"""Run the ``main`` of a module of the lab, with exactly the module path of this process."""


def to_bytes(message: Message) -> bytes:
    """One frame. Lone surrogates, which paths may hold, survive as JSON escapes."""
    body = json.dumps(message, separators=(",", ":")).encode()
    return _LENGTH.pack(len(body)) + body


def send(connection: socket.socket, message: Message) -> None:
    """Send one message, blocking. Raises OSError where the other side is gone."""
    connection.sendall(to_bytes(message))


def receive(connection: socket.socket) -> Message | None:
    """The next message, blocking; None where the other side is gone."""
    head = _exactly(connection, _LENGTH.size)
    body = None if head is None else _exactly(connection, _LENGTH.unpack(head)[0])
    if body is None:
        return None
    message: Message = json.loads(body)
    return message


def whole(data: bytearray) -> Message | None:
    """The message that ``data`` holds; None where a part of it is still to come. Raises ValueError for noise."""
    if len(data) < _LENGTH.size:
        return None
    (size,) = _LENGTH.unpack_from(data)
    if size > LINE_LIMIT_BYTES:
        text = f"a message of {size} bytes"
        raise ValueError(text)
    if len(data) < _LENGTH.size + size:
        return None
    message: Message = json.loads(data[_LENGTH.size :])
    return message


def _exactly(connection: socket.socket, size: int) -> bytes | None:
    """This many bytes and no more, so that a file descriptor sent after a message is not read past."""
    parts = bytearray()
    while len(parts) < size:
        try:
            part = connection.recv(min(size - len(parts), _READ_BYTES))
        except ConnectionError:
            return None
        if not part:
            return None
        parts += part
    return bytes(parts)


def send_socket(connection: socket.socket, given: socket.socket) -> None:
    """Hand a socket over; it follows the message that announces it."""
    socket.send_fds(connection, [b"+"], [given.fileno()])


def receive_socket(connection: socket.socket) -> socket.socket:
    """Take the socket that :func:`send_socket` handed over."""
    _, descriptors, _, _ = socket.recv_fds(connection, 1, 1)
    if not descriptors:
        text = "the lab's main process announced a socket and did not send one"
        raise LabError(text)
    return socket.socket(fileno=descriptors[0])


class Channel:
    """The main process's end of a connection: sends and receives without ever blocking on a full buffer."""

    def __init__(self, connection: socket.socket, name: str) -> None:
        connection.setblocking(False)  # noqa: FBT003 - its only parameter
        self.connection = connection
        self.name = name
        self.ended = False
        self._incoming = bytearray()
        self._outgoing = bytearray()

    def fileno(self) -> int:
        """The descriptor, so that selectors take a channel as it is."""
        return self.connection.fileno()

    @property
    def has_output(self) -> bool:
        """Whether bytes wait for the other side to read."""
        return bool(self._outgoing)

    def put(self, message: Message) -> None:
        """Queue a message and send what the socket takes now."""
        self._outgoing += to_bytes(message)
        self.flush()

    def flush(self) -> None:
        """Send what the socket takes now."""
        try:
            while self._outgoing:
                del self._outgoing[: self.connection.send(self._outgoing)]
        except BlockingIOError:
            pass  # the socket is full: the selector says when it is not
        except OSError:
            self._outgoing.clear()
            self.ended = True

    def pull(self) -> list[Message]:
        """Every whole message that has arrived; sets ``ended`` where the other side is gone."""
        try:
            while part := self.connection.recv(_READ_BYTES):
                self._incoming += part
            self.ended = True
        except BlockingIOError:
            pass  # nothing more for now
        except OSError:
            self.ended = True
        return self._cut()

    def _cut(self) -> list[Message]:
        messages, at = [], 0
        while len(self._incoming) - at >= _LENGTH.size:
            (size,) = _LENGTH.unpack_from(self._incoming, at)
            if size > FRAME_LIMIT_BYTES:
                text = f"{self.name} sent noise instead of a message; please report it"
                raise Disturbed(text)
            start = at + _LENGTH.size
            if len(self._incoming) - start < size:
                break
            at = start + size
            try:
                messages.append(json.loads(self._incoming[start:at]))
            except ValueError as error:
                text = f"{self.name} sent noise instead of a message; please report it"
                raise Disturbed(text) from error
        del self._incoming[:at]
        return messages

    def ask(self, message: Message, *, given: socket.socket | None = None, timeout_s: float) -> Message | None:
        """Send a message, and a socket after it, and wait for the one answer; None where the other side ended.

        Raises TimeoutError where nothing came within ``timeout_s`` seconds.
        """
        self.put(message)
        deadline = time.monotonic() + timeout_s
        while self._outgoing and not self.ended:
            self.wait(deadline)
            self.flush()
        if given is not None:
            self._give(given, deadline)
        return self.next(deadline)

    def _give(self, given: socket.socket, deadline: float) -> None:
        """Hand a socket over as soon as the other side has made room for it."""
        while not self.ended:
            try:
                send_socket(self.connection, given)
            except BlockingIOError:
                self.wait(deadline, writing=True)
            except OSError:
                self.ended = True
            else:
                return

    def next(self, deadline: float) -> Message | None:
        """Wait for one message until ``deadline`` (``time.monotonic``); None where the other side ended."""
        while not (messages := self.pull()):
            if self.ended:
                return None
            self.wait(deadline)
        if len(messages) > 1:
            text = f"{self.name} sent {len(messages)} answers to one question; please report it"
            raise LabError(text)
        return messages[0]

    def wait(self, deadline: float | None, *, writing: bool = False) -> None:
        """Return when something can be read, or after sending on what waits; ``writing``: only when there is room.

        Raises TimeoutError at ``deadline``.
        """
        left_s = None if deadline is None else deadline - time.monotonic()
        if left_s is not None and left_s <= 0:
            text = f"no answer from {self.name}"
            raise TimeoutError(text)
        with selectors.DefaultSelector() as selector:  # not select.select: a test runner may hold many descriptors
            reading_too = selectors.EVENT_READ | (selectors.EVENT_WRITE if self._outgoing else 0)
            selector.register(self, selectors.EVENT_WRITE if writing else reading_too)
            selector.select(left_s)
        if self._outgoing:
            self.flush()

    def say_goodbye(self) -> None:
        """Tell the other side that nothing more will come, and still hear its end."""
        with contextlib.suppress(OSError):  # it has ended already
            self.connection.shutdown(socket.SHUT_WR)

    def wait_for_end(self, deadline: float) -> None:
        """Drop what still comes until the other side has ended, or until ``deadline``."""
        self._outgoing.clear()
        with contextlib.suppress(TimeoutError):
            while not self.ended:
                self.wait(deadline)
                self.pull()

    def close(self) -> None:
        """Close the connection; the other side sees its end."""
        self.ended = True
        self.connection.close()


class Lines:
    """Cuts what comes through a pipe into lines, and gives up on one that is too long."""

    def __init__(self, limit_bytes: int = LINE_LIMIT_BYTES) -> None:
        self._limit_bytes = limit_bytes
        self._parts: list[bytes] = []
        self._size = 0
        self.too_large = False

    def feed(self, data: bytes) -> list[bytes]:
        """The lines that ``data`` completes, without their ends."""
        if self.too_large:
            return []
        *whole, rest = data.split(b"\n")
        if whole:
            whole[0] = b"".join([*self._parts, whole[0]])
            self._parts, self._size = [], 0
        if rest:
            self._parts.append(rest)
            self._size += len(rest)
        if self._size > self._limit_bytes or any(len(line) > self._limit_bytes for line in whole):
            self.too_large = True
            self._parts = []
        return whole

    @property
    def rest(self) -> bytes:
        """The bytes after the last line end."""
        return b"".join(self._parts)
