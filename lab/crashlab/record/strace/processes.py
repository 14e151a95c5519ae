"""What each traced process has: open descriptors, a working directory, a umask; and who shares it with whom.

As in the kernel, a descriptor leads to an *open file description*, which holds the position and the
flags: ``dup`` and ``fork`` share it. A table of descriptors belongs to one process, or to several
(``CLONE_FILES``), as do directory and umask (``CLONE_FS``) and memory (``CLONE_VM``).
"""

from __future__ import annotations

import copy
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from crashlab.record.strace.lines import Call
    from crashlab.record.strace.mapped import Mapping
    from crashlab.record.strace.mirror import Node, Place

CLONES = frozenset({"clone", "clone3", "fork", "vfork"})


@dataclass(eq=False, slots=True)
class Description:
    """An open file description. ``node`` is None for what lies outside of the root, at ``real``."""

    node: Node | None
    path: str
    real: str
    flags: set[str] = field(default_factory=set)
    position: int = 0
    events: bool = False

    @property
    def appends(self) -> bool:
        """Whether each write goes to the end."""
        return "O_APPEND" in self.flags

    @property
    def sync(self) -> str:
        """As in :class:`crashlab.trace.Write`."""
        return "all" if "O_SYNC" in self.flags else "data" if "O_DSYNC" in self.flags else ""


@dataclass(slots=True)
class Slot:
    """One descriptor number."""

    description: Description
    close_on_exec: bool = False


@dataclass(eq=False, slots=True)
class Surroundings:
    """Working directory and umask."""

    directory: Place
    umask: int


@dataclass(eq=False, slots=True)
class Memory:
    """An address space: its shared mappings of traced files, by address."""

    mappings: dict[int, Mapping] = field(default_factory=dict)


@dataclass(eq=False, slots=True)
class Process:
    """A thread, in the kernel's words a task. ``group`` is the process that it belongs to."""

    pid: int
    group: int
    table: dict[int, Slot]
    surroundings: Surroundings
    memory: Memory
    number: int | None = None

    def child(self, pid: int, call: Call) -> Process:
        """The process that ``call`` (one of :data:`CLONES`) of this one makes."""
        flags = set(re.findall(r"CLONE_\w+", call.text))
        if call.name == "vfork":
            flags = {"CLONE_VM"}
        table = self.table if "CLONE_FILES" in flags else {fd: copy.copy(slot) for fd, slot in self.table.items()}
        surroundings = self.surroundings if "CLONE_FS" in flags else copy.copy(self.surroundings)
        memory = self.memory if "CLONE_VM" in flags else Memory(dict(self.memory.mappings))
        return Process(pid, self.group if "CLONE_THREAD" in flags else pid, table, surroundings, memory)

    def executed(self) -> None:
        """A new program runs: what was marked is closed, and nothing is shared with anyone any more."""
        self.table = {fd: copy.copy(slot) for fd, slot in self.table.items() if not slot.close_on_exec}
        self.surroundings = copy.copy(self.surroundings)
        self.memory = Memory()
        self.group = self.pid


def kinship(pid: int) -> tuple[int, int] | None:
    """Group and parent of a living process, from ``/proc``; None where it has ended."""
    try:
        with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as file:
            found = dict(re.findall(r"^(Tgid|PPid):\t(\d+)$", file.read(), re.MULTILINE))
    except OSError:
        return None
    return int(found["Tgid"]), int(found["PPid"])
