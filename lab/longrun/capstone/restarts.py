"""A program that is started again until it comes to its end, each time in a process that may die.

Under the lab a recovery is one process. Here it is the one that starts others and outlives them, as a service
manager does: it holds the lab, so what a dead child has done to the world stays done, and the next child meets it.
A child that is killed is started again, at most so often as is stated; what else ends a child is an error.

The children's writes are not the recovery's own: a fault that watches recoveries (``recovery``) does not see them.
"""

from __future__ import annotations

import json
import os
import signal
import socket
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol, cast

from longrun.errors import LongrunError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


class Lab(Protocol):
    """The lab, of which only the directory is used here; whatever a child asks for is passed on by its name."""

    @property
    def dir(self) -> Path:
        """The directory of the agent."""


class ChildFailed(LongrunError):  # noqa: N818 - it names who failed
    """A child ended otherwise than by its end or by SIGKILL. The text is its error."""


@dataclass(frozen=True)
class FarLab:
    """The lab as a child has it: every word goes to the parent, and is done when its answer comes."""

    dir: Path
    _line: BinaryIO

    def effect(self, name: str, *, key: str | None = None, **detail: Any) -> str:
        """As :meth:`crashlab.Lab.effect`."""
        return str(self._ask("effect", name, key=key, **detail))

    def records(self, name: str | None = None) -> list[SimpleNamespace]:
        """As :meth:`crashlab.Lab.records`; of each, what a world asks for."""
        return [SimpleNamespace(**form) for form in self._ask("records", name)]

    def unknown(self, name: str, *, key: str | None = None, **detail: Any) -> None:
        """As :meth:`crashlab.Lab.unknown`."""
        self._ask("unknown", name, key=key, **detail)

    def ack(self, value: Any = None) -> None:
        """As :meth:`crashlab.Lab.ack`."""
        self._ask("ack", value)

    def save_point(self, name: str) -> None:
        """As :meth:`crashlab.Lab.save_point`."""
        self._ask("save_point", name)

    def _ask(self, method: str, *given: Any, **named: Any) -> Any:
        self.tell({"method": method, "given": given, "named": named})
        return json.loads(self._line.readline())["answer"]

    def tell(self, form: dict[str, Any]) -> None:
        """Send one word without waiting for an answer."""
        self._line.write(json.dumps(form).encode() + b"\n")
        self._line.flush()


def until_it_ends(lab: Lab, work: Callable[[Any], Any], *, most: int) -> tuple[Any, int]:
    """The end that ``work(lab)`` returns in a child of its own, and how many children died before; None after ``most``.

    Raises ChildFailed where a child raised, or ended in any other way.
    """
    for deaths in range(most):
        said, status = _one_child(lab, work)
        if "end" in said:
            return said["end"], deaths
        if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
            continue
        raise ChildFailed(said.get("raised", f"a child ended with status {status}"))
    return None, most


def _one_child(lab: Lab, work: Callable[[Any], Any]) -> tuple[dict[str, Any], int]:
    """What a child said last, and its status once it is gone."""
    ours, theirs = socket.socketpair()
    child = os.fork()
    if child == 0:
        ours.close()
        _be_the_child(FarLab(lab.dir, cast("BinaryIO", theirs.makefile("rwb"))), work)
    theirs.close()
    said: dict[str, Any] = {}
    try:
        with ours, ours.makefile("rwb") as line:
            for word in line:
                said = json.loads(word)
                if "method" in said:
                    line.write(json.dumps({"answer": _done(lab, said)}).encode() + b"\n")
                    line.flush()
    except BrokenPipeError:  # it died before it could hear
        pass
    finally:
        _, status = os.waitpid(child, 0)
    return said, status


def _be_the_child(lab: FarLab, work: Callable[[Any], Any]) -> None:
    """Do the work and go, without anything that the parent has registered for its own end."""
    try:
        lab.tell({"end": work(lab)})
    except Exception as error:  # noqa: BLE001 - told to the parent, which raises it
        lab.tell({"raised": f"{type(error).__name__}: {error}"})
    finally:
        os._exit(0)


def _done(lab: Lab, said: dict[str, Any]) -> Any:
    answer = getattr(lab, said["method"])(*said["given"], **said["named"])
    if said["method"] != "records":
        return answer
    return [{"name": e.name, "key": e.key, "detail": dict(e.detail), "counted": e.counted} for e in answer]
