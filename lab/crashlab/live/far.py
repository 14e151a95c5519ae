"""A gate of errors that another process holds: of a Python subject that is watched from outside.

The subject's own process asks through a socket whether the error has struck and how many ops there were, and says
when it is to end (between a save that failed and the same save again). The watching process answers while it watches.
"""

from __future__ import annotations

import socket
import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from crashlab.live.errors import ErrorGate

_ASK, _OFF, _ON = b"?", b"0", b"1"
_ANSWER = struct.Struct("QQ?")


class FarGate:
    """What the subject's process sees of the gate; ``descriptor`` is its end of the socket."""

    def __init__(self, descriptor: int, mode: str) -> None:
        self._socket, self.mode = socket.socket(fileno=descriptor), mode
        self._socket.set_inheritable(False)

    def _ask(self, question: bytes) -> tuple[int, int, bool]:
        self._socket.sendall(question)
        struck, count, active = _ANSWER.unpack(self._socket.recv(_ANSWER.size, socket.MSG_WAITALL))
        return struck, count, active

    @property
    def struck(self) -> int:
        """How many calls failed so far."""
        return self._ask(_ASK)[0]

    @property
    def active(self) -> bool:
        """Whether calls fail still."""
        return self._ask(_ASK)[2]

    @active.setter
    def active(self, active: bool) -> None:
        self._ask(_ON if active else _OFF)

    def count(self) -> int:
        """How many ops there were so far."""
        return self._ask(_ASK)[1]

    def close(self) -> None:
        """Nothing will be asked any more."""
        self._socket.close()


class GateKeeper:
    """The watching process's side of ``gate``: :attr:`descriptor` is to be polled, ``theirs`` goes to the subject."""

    def __init__(self, gate: ErrorGate) -> None:
        self.gate = gate
        self._ours, self.theirs = socket.socketpair()

    @property
    def descriptor(self) -> int:
        """What to poll."""
        return self._ours.fileno()

    def serve(self, count: int) -> None:
        """Answer one question; ``count`` is the number of ops so far."""
        question = self._ours.recv(1)
        if question in (_OFF, _ON):
            self.gate.active = question == _ON
        self._ours.sendall(_ANSWER.pack(self.gate.struck, count, self.gate.active))

    def close(self) -> None:
        """Nobody asks any more."""
        self._ours.close()
        self.theirs.close()
