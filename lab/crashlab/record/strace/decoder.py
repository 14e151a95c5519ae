"""From calls to ops: finds out which process made a call, on what, and tells what it changed.

An op is told when its call has returned. Between processes that run at the same time this is the
order in which the calls returned, which need not be the order in which the kernel did them; where
that can matter, because both touch one inode, :attr:`Decoder.unseen` says so.
"""

from __future__ import annotations

import os
import re
import stat
from typing import TYPE_CHECKING, Any

from crashlab import trace as t
from crashlab.events import Events
from crashlab.record.places import Places, Target
from crashlab.record.strace import births, mapped, naming, opening, writing
from crashlab.record.strace.lines import Call, Calls, End, Line
from crashlab.record.strace.processes import CLONES, Description, Memory, Process, Surroundings, kinship

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from crashlab.record.strace.mirror import Mirror, Node, Place, Where

HANDLERS: dict[str, Callable[[Decoder, Process, Call], None]] = {
    **opening.CALLS,
    **writing.CALLS,
    **naming.CALLS,
    **births.CALLS,
    **mapped.CALLS,
}
_MAGIC = re.compile(r"/proc/(self|thread-self|\d+)(?:/task/\d+)?/(fd/(\d+)|cwd)")
_STANDARD = {"/dev/stdin": 0, "/dev/stdout": 1, "/dev/stderr": 2}


class Decoder:
    """Takes lines, emits ops. ``mirror`` is the tree that it keeps on the way."""

    def __init__(  # noqa: PLR0913 - what one recording is told
        self,
        *,
        mirror: Mirror,
        emit: Callable[[t.Op], None],
        directory: str,
        umask: int,
        outside: Sequence[str] = (),
        rebuilt: Sequence[str] = (),
        events_path: str = "",
        delay_ns: int = 0,
    ) -> None:
        self.mirror = mirror
        self.places = Places(mirror.root, outside)
        self.rebuilt = tuple(rebuilt)
        self.processes: dict[int, Process] = {}
        self.outside_writes: dict[str, None] = {}
        self.unseen: dict[str, None] = {}
        self.threads = 1
        self.mapped = False
        self.late = False
        self.delay_ns = delay_ns
        self.events = _events_of(events_path)
        self.events_path = os.path.realpath(events_path) if events_path else ""
        self.first: int | None = None
        self.first_end: End | None = None
        self.origins: list[tuple[int, str, int]] = []
        self.counts: dict[tuple[int, str], int] = {}
        self.count = 0
        self._emit = emit
        self._directory, self._umask = directory, umask
        self._calls = Calls()
        self._nameless: dict[int, list[tuple[type[t.Op], dict[str, Any]]]] = {}
        self._held: dict[int, list[Call]] = {}
        self._now: Call | None = None
        self._compared = 0

    # --- taking lines ------------------------------------------------------------------------------

    def take(self, line: Line) -> None:
        """Decode one line."""
        event = self._calls.take(line)
        if isinstance(event, End):
            self._ended(event)
        elif event is not None:
            self._called(event)

    def begun(self, pid: int, time_ns: int) -> None:
        """A call has begun and has not returned: stores into mappings before it are there to be compared."""
        self._compare(self.processes.get(pid), time_ns)

    def _compare(self, process: Process | None, time_ns: int) -> None:
        if self.delay_ns and self._compared != time_ns:
            self._compared = time_ns
            mapped.compare_all(self, process, time_ns)

    def _called(self, call: Call) -> None:
        process = self.process_of(call.pid)
        if process is None:
            self._held.setdefault(call.pid, []).append(call)
            return
        if not call.returned:
            self._compare(process, call.time_ns)
            return
        if not call.resumed:
            self._compare(process, call.time_ns)
        self.counts[call.pid, call.name] = self.counts.get((call.pid, call.name), 0) + 1
        handler = HANDLERS.get(call.name)
        if call.result is None or handler is None:
            return
        self._now = call
        handler(self, process, call)
        self._now = None

    def process_of(self, pid: int) -> Process | None:
        """The process of a line: known, the first one, or a child whose parent's call has not returned yet."""
        known = self.processes.get(pid)
        if known is not None:
            return known
        if self.first is None:
            self.first = pid
            surroundings = Surroundings(self._place(self._directory), self._umask)
            self.processes[pid] = Process(pid, pid, {}, surroundings, Memory(), 0)
            return self.processes[pid]
        parents = [call for call in self._calls.in_flight.values() if call.name in CLONES and call.child is None]
        if len(parents) > 1 and (kin := kinship(pid)) is not None:
            parents = [call for call in parents if self.processes[call.pid].group in kin]
        if len(parents) != 1:
            return None
        parents[0].child = pid
        return self.born(self.processes[parents[0].pid], pid, parents[0])

    def born(self, parent: Process, pid: int, call: Call) -> Process:
        """A process was made; what it did before its maker's call returned is decoded now."""
        process = self.processes[pid] = parent.child(pid, call)
        for held in self._held.pop(pid, ()):
            self._called(held)
        return process

    def _place(self, path: str) -> Place:
        where = self.mirror.resolve("/", path, follow=True)
        if where is None:
            return path
        return where.real if where.node is None else where.node

    def _ended(self, end: End) -> None:
        if end.by_exec_of is not None:
            process = self.processes.pop(end.by_exec_of, None)
            if process is not None:
                process.pid = end.pid
                self.processes[end.pid] = process
            return
        if end.pid == self.first:
            self.first_end = end
        process = self.processes.pop(end.pid, None)
        if process is not None:
            mapped.left(self, process, process.memory)

    def close(self) -> None:
        """No more lines come."""
        for pid in self._held:
            self.note(f"process {pid} was started by something that strace did not show")
        if self.events is not None:
            self.events.close()

    # --- telling -----------------------------------------------------------------------------------

    def tell(self, process: Process, op_type: type[t.Op], **fields: Any) -> None:
        """Number a change that has happened, and emit it."""
        call = self._now
        fields.setdefault("time_ns", call.time_ns if call is not None else 0)
        pending = self._nameless.get(fields.get("inode", -1))
        if pending is not None:
            pending.append((op_type, fields))
            return
        if process.number is None:
            process.number = self.threads
            self.threads += 1
        self.count += 1
        name = "" if call is None else call.name
        self.origins.append((process.pid, name, self.counts.get((process.pid, name), 0)))
        self._emit(op_type(n=self.count, thread=process.number, **fields))
        self._note_overlaps(op_type, fields)

    def _note_overlaps(self, op_type: type[t.Op], fields: dict[str, Any]) -> None:
        """What returned while another call was under way may have happened before or after it.

        A barrier promises only what had returned when it began, so one that something overlapped would promise
        too much where it stands. A change that a barrier overlapped stands behind it: that promises less.
        """
        if issubclass(op_type, t.EVENTS):
            return
        inode, barrier = fields.get("inode"), issubclass(op_type, t.BARRIERS)
        for pid, other in self._calls.in_flight.items():
            if self._now is None or pid != self._now.pid:
                other.seen.append((inode, barrier))
        for other_inode, other_barrier in () if self._now is None else self._now.seen:
            if not other_barrier and (inode is None or inode == other_inode):
                path = fields.get("path", "some file")
                self.note(f"two calls on {path} overlapped in time: their order on disk is not certain")

    def note(self, text: str) -> None:
        """Something happened that cannot be told as ops."""
        self.unseen[text] = None

    def note_outside(self, where: Where) -> None:
        """A file outside of the root was written."""
        if self.places.matters(Target(where.real, None, where.asked)):
            self.outside_writes[where.real] = None

    def is_events(self, real: str) -> bool:
        """Whether this is the file that the program tells its events in."""
        return bool(self.events_path) and real == self.events_path

    def take_events(self, process: Process, data: bytes) -> None:
        """Bytes that the program appended to its file of events."""
        if self.events is not None:
            for op_type, fields in self.events.feed(data):
                self.tell(process, op_type, **fields)

    # --- files without a name ----------------------------------------------------------------------

    def new_nameless(self, process: Process, node: Node) -> None:
        """A file of O_TMPFILE: no crash can show it, so nothing is told until a link gives it a name."""
        self._nameless[node.number] = []
        self.tell(process, t.Create, path="", inode=node.number, mode=node.mode)

    def tell_nameless(self, process: Process, node: Node) -> None:
        """A nameless file is linked: tell its history before that."""
        for op_type, fields in self._nameless.pop(node.number, ()):
            self.tell(process, op_type, **fields)

    # --- finding -----------------------------------------------------------------------------------

    def opened(self, process: Process, call: Call, position: int, *, changing: bool = True) -> Description | None:
        """The open file in argument ``position``; None for what is no file, or none that was seen being opened."""
        fd = call.number(position)
        slot = process.table.get(fd)
        if slot is not None:
            return slot.description
        path = self.places.relative(call.told_path(position)) if changing else None
        if path is not None:
            self.note(f"{path or 'the root'} was changed through a descriptor that was not seen being opened")
        return None

    def place(self, process: Process, call: Call, position: int | None) -> Place:
        """The directory that a relative path starts from: the working directory, or that of a descriptor."""
        if position is None or call.args[position].startswith("AT_FDCWD"):
            return process.surroundings.directory
        slot = process.table.get(call.number(position))
        if slot is None:
            return call.told_path(position) or "/"
        return slot.description.node or slot.description.real

    def where(
        self, process: Process, call: Call, position: int, *, at: int | None = None, follow: bool = False
    ) -> Where | Description | None:
        """What the path in argument ``position`` means: a name, or the open file that it leads to by ``/proc``."""
        raw = call.string(position)
        if raw is None:
            return None
        text = os.fsdecode(raw)
        start = self.place(process, call, at)
        if follow and (magic := self._magic(process, os.path.join(self.mirror.real(start), text))) is not None:
            return magic
        start, text = self._behind_magic(process, start, text)
        where = self.mirror.resolve(start, text, follow=follow)
        if where is None:
            self.note(f"{text!r} leads through names that this recorder does not know")
        return where

    def _magic(self, process: Process, text: str) -> Description | None:
        text = re.sub(r"^/dev/fd/", "/proc/self/fd/", text)
        found = _MAGIC.fullmatch(text)
        fd = _STANDARD.get(text, -1) if found is None else int(found[3] or -1)
        if fd < 0:
            return None
        owner = process if found is None else self._named(process, found[1])
        slot = None if owner is None else owner.table.get(fd)
        return None if slot is None else slot.description

    def _behind_magic(self, process: Process, start: Place, text: str) -> tuple[Place, str]:
        """Where a path begins that leads through a directory of the program by ``/proc``: these links are its own."""
        text = re.sub(r"^/dev/fd/", "/proc/self/fd/", text)
        found = _MAGIC.match(text)
        owner = None if found is None or text[found.end() :][:1] != "/" else self._named(process, found[1])
        if found is None or owner is None:
            return start, text
        rest = text[found.end() :].lstrip("/") or "."
        if found[2] == "cwd":
            return owner.surroundings.directory, rest
        slot = owner.table.get(int(found[3]))
        return (start, text) if slot is None else (slot.description.node or slot.description.real, rest)

    def _named(self, process: Process, name: str) -> Process | None:
        return process if name.endswith("self") else self.processes.get(int(name))

    def is_regular(self, real: str) -> bool:
        """Whether a file outside of the root holds bytes; one that is gone by now did."""
        try:
            return stat.S_ISREG(os.stat(real).st_mode)
        except OSError:
            return True


def _events_of(path: str) -> Events | None:
    """The events of a run, with what the file has already: that was done before."""
    if not path:
        return None
    events = Events()
    if os.path.exists(path):
        with open(path, "rb") as file:
            events.feed(file.read())
    return events
