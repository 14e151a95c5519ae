"""A real death at a chosen op: SIGKILL before the next one, or inside a write.

Beside the computed kill states stands a sample that really was killed. The gate is asked by the
recorder before each op; a death is never an exception, since exceptions run handlers, ``finally``
and buffer flushes, which a killed process does not.
"""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from typing import NoReturn


@dataclass(frozen=True, slots=True)
class KillGate:
    """Dies after op ``after``, before the next one; with ``cut_at_byte``, inside op ``after``.

    Satisfies the ``Gate`` that the recorder asks. A run that ends before the chosen moment calls
    :meth:`end`, so that op ``after`` may be the last one.
    """

    after: int
    cut_at_byte: int = 0

    def before(self, n: int) -> None:
        """Die where op ``n`` is the first that must not happen."""
        if self.cut_at_byte == 0 and n > self.after:
            self.die()

    def cut_bytes(self, n: int, length: int) -> int | None:
        """How many of ``length`` bytes op ``n`` may write before :meth:`die`; None for all of them."""
        return min(self.cut_at_byte, length) if self.cut_at_byte and n == self.after else None

    def end(self) -> None:
        """The run is over: die now where its last op was the chosen one."""
        if self.cut_at_byte == 0:
            self.die()

    def die(self) -> NoReturn:
        """SIGKILL for this process. No handler, no flush, no return."""
        while True:
            os.kill(os.getpid(), signal.SIGKILL)
