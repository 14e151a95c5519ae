"""Words between the disk's process and those who command it: a command, its numbers and bytes, one answer.

A message is its length, a word and bytes. Every command is answered, so that a mark is set when
:func:`mark` returns.
"""

from __future__ import annotations

import contextlib
import socket
import struct
from typing import TYPE_CHECKING

from crashlab.errors import LabError

if TYPE_CHECKING:
    from pathlib import Path

_HEAD = struct.Struct("<I12s")
_CONTROL_LIMIT_S = 60.0


def send(connection: socket.socket, word: str, body: bytes = b"") -> None:
    """One message."""
    connection.sendall(_HEAD.pack(len(body), word.encode()) + body)


def receive(connection: socket.socket) -> tuple[str, bytes] | None:
    """The next message; None where the other side has gone."""
    head = _exactly(connection, _HEAD.size)
    if head is None:
        return None
    length, word = _HEAD.unpack(head)
    body = _exactly(connection, length)
    return None if body is None else (word.rstrip(b"\0").decode(), body)


def _exactly(connection: socket.socket, length: int) -> bytes | None:
    parts = []
    while length:
        try:
            part = connection.recv(min(length, 1 << 20))
        except ConnectionError:
            return None
        if not part:
            return None
        parts.append(part)
        length -= len(part)
    return b"".join(parts)


class Control:
    """A connection to a disk's process, or to its keeper.

    Raises LabError where the process has gone, does not answer, or refuses.
    """

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        connection.settimeout(_CONTROL_LIMIT_S)

    @staticmethod
    def to(path: str | Path) -> Control:
        """Connect to the control socket ``path``."""
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.connect(str(path))
        except OSError as error:
            connection.close()
            text = f"no disk listens on {path}: {error.strerror}; is its RealDisk still open?"
            raise LabError(text) from error
        return Control(connection)

    def ask(self, word: str, body: bytes = b"") -> bytes:
        """Send a command and wait for its answer."""
        try:
            send(self._connection, word, body)
            answer = receive(self._connection)
        except OSError as error:
            text = f"the disk's process does not answer {word!r}: {error}"
            raise LabError(text) from error
        if answer is None:
            text = f"the disk's process ended while it was asked {word!r}"
            raise LabError(text)
        if answer[0] != "ok":
            text = f"the disk's process refused {word!r}: {answer[1].decode(errors='replace')}"
            raise LabError(text)
        return answer[1]

    def close(self) -> None:
        """Close the connection."""
        with contextlib.suppress(OSError):
            self._connection.close()


def mark(path: str | Path, name: int) -> None:
    """Set mark ``name`` on the disk whose control socket is ``path``; it is set when this returns.

    For a process that has no handle on the disk, such as a recorded child.
    """
    control = Control.to(path)
    try:
        control.ask("mark", struct.pack("<q", name))
    finally:
        control.close()
