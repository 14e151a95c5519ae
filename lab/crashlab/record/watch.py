"""One recording: the numbers of ops and inodes, and the order of real calls and what is told of them.

Every change is one :class:`Plan`: what the real call is, and what it did once it has returned. The
lock is held around asking the gate, the real call and telling, so that the order of the trace is
the order on disk. Only calls on regular files and names below the root are done under it: a call
that may wait, on a FIFO or a socket, must not stop the other threads.
"""

from __future__ import annotations

import errno
import functools
import os
import stat
import sys
import threading
import time
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, runtime_checkable

from crashlab import trace as t
from crashlab.record.patch import REAL
from crashlab.record.places import Places, Target, descriptor_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from crashlab.directory import NUMBER

Change = tuple[type[t.Op], dict[str, Any]]
_NOT_OURS = (TypeError, ValueError, OSError, OverflowError, BufferError, AttributeError)
"""What planning may raise for arguments that the real call refuses: it then refuses them itself."""


_BARRIERS = frozenset({"fsync", "fdatasync", "fcntl"})


class Gate(Protocol):
    """Asked before op ``n`` happens, so that the lab can act there.

    ``before`` may be asked again for the same ``n``: where a call fails or changes nothing, it was no op.
    """

    def before(self, n: int) -> None:
        """Op ``n`` is about to happen. May never return; what it raises, the subject sees."""

    def cut_bytes(self, n: int, length: int) -> int | None:
        """How many of the ``length`` bytes of op ``n`` to let through before :meth:`die`; None for all.

        Op ``n`` is told with the bytes that are there, and then :meth:`die` is called.
        """

    def die(self) -> NoReturn:
        """End this process now."""


@dataclass(slots=True)
class Plan:
    """One call that may change something.

    ``done`` tells, from the result, what it changed. ``call`` does it, where that is not what the
    subject asked for to the letter; ``part`` does only the first bytes of a write. ``locked`` is
    False for calls whose order does not matter. ``does`` says of an opening what it changes: ``create``,
    ``truncate`` or ``open`` for nothing.
    """

    done: Callable[[Any], Iterable[Change]]
    call: Callable[[], Any] | None = None
    part: Callable[[int], object] | None = None
    length: int = 0
    locked: bool = True
    does: str = ""


@dataclass(frozen=True, slots=True)
class Strike:
    """What becomes of one call in place of what it asked for.

    ``error`` is the name of an errno. With ``take`` no error is raised: the call takes only so many bytes.
    """

    error: str
    take: int | None = None


@runtime_checkable
class Striker(Protocol):
    """A gate that lets calls fail: the subject meets a real error, and the files stay as they are."""

    def strike(self, n: int, call: str, length: int) -> Strike | None:
        """What the call that would be op ``n`` comes to; None where it goes through.

        ``call`` is the name of the function, for an opening what it does; ``length`` the bytes of a write.
        """


@runtime_checkable
class Informed(Protocol):
    """A gate that can learn what another process has made at the same place."""

    def news(self) -> NUMBER:
        """The numbers of inodes that it has been told since, to be asked where an inode is not known."""


class Planner(Protocol):
    """Looks at a call before it happens. None: the call is none of ours."""

    def __call__(self, watch: Watch, real: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Plan | None:
        """Plan ``real(*args, **kwargs)``."""


@dataclass(frozen=True, slots=True)
class Known:
    """A node of the tree as a call found it; ``place`` is a descriptor or a real path."""

    place: int | str
    inode: int
    path: str
    before: os.stat_result

    def now(self) -> os.stat_result:
        """Its status now."""
        return os.stat(self.place)

    @property
    def fields(self) -> dict[str, Any]:
        """The fields that every op on it has."""
        return {"path": self.path, "inode": self.inode}


class Watch:
    """What one recording knows. All methods but :meth:`run` are called under :attr:`lock`."""

    def __init__(
        self, *, root: str, numbers: NUMBER, emit: Callable[[t.Op], None], gate: Gate | None, outside: Sequence[str]
    ) -> None:
        self.lock = threading.RLock()
        self.places = Places(root, outside)
        self.outside_writes: dict[str, None] = {}
        self.unseen: dict[str, None] = {}
        self.threads = 1
        self.stopped = False
        self.numbers = dict(numbers)
        self._next_number = max(self.numbers.values(), default=0) + 1
        self._device = os.stat(self.places.root).st_dev
        self._opened: dict[int, tuple[int, str]] = {}
        self._names: dict[int, str] = {}
        self._nameless: dict[int, list[Change]] = {}
        self._emit = emit
        self._gate = gate
        asked: object = gate
        self._striker: Striker | None = asked if isinstance(asked, Striker) else None
        self._informed: Informed | None = asked if isinstance(asked, Informed) else None
        self._count = 0
        self._depth = 0
        self._waiting: deque[Change] = deque()
        self._telling = False
        self._local = threading.local()
        self._local.number = 0

    # --- doing and telling -----------------------------------------------------------------------

    def run(self, planner: Planner, real: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Do the call, and tell what it changed."""
        with self.lock:
            plan = None
            if not self.stopped:
                try:
                    plan = planner(self, real, *args, **kwargs)
                except _NOT_OURS:
                    plan = None
            call = functools.partial(real, *args, **kwargs) if plan is None or plan.call is None else plan.call
            if plan is not None and plan.locked:
                return self._perform(plan, call, plan.does or _name_of(real))
        result = call()
        if plan is not None:
            plan.done(result)
        return result

    def _perform(self, plan: Plan, call: Callable[[], Any], name: str) -> Any:
        if self._depth:
            self.note("a signal handler or a finalizer wrote in the middle of another op: their order is not certain")
        self._depth += 1
        try:
            if self._gate is not None:
                self._ask(self._gate, plan)
            if self._striker is not None:
                call = self._stricken(self._striker, plan, call, name)
            result = call()
            try:
                changes = list(plan.done(result))
            except OSError as error:
                changes = []
                self.note(f"a change could not be looked at after it was done: {error}")
            for op_type, fields in changes:
                self.tell(op_type, fields)
        finally:
            self._depth -= 1
        return result

    def _ask(self, gate: Gate, plan: Plan) -> None:
        n = self._count + 1
        gate.before(n)
        if plan.part is not None:
            cut = gate.cut_bytes(n, plan.length)
            if cut is not None:
                # The op is told with the bytes that are there, so that the directory can be held against the trace.
                for op_type, fields in plan.done(plan.part(cut)):
                    self.tell(op_type, fields)
                gate.die()

    def _stricken(self, gate: Striker, plan: Plan, call: Callable[[], Any], name: str) -> Callable[[], Any]:
        """The call, or a shorter one; raises where it fails. What became of it is told as an op of its own."""
        strike = gate.strike(self._count + 1, name, plan.length if plan.part is not None else 0)
        if strike is None:
            return call
        if strike.take is not None and plan.part is not None:
            self.tell(t.Refused, {"call": name, "error": "short"})
            return functools.partial(plan.part, strike.take)
        number = int(getattr(errno, strike.error))
        changes = [each for each in plan.done(None) if each[0] is t.Fsync] if name in _BARRIERS else []
        self.tell(t.Refused, {"call": name, "error": strike.error})
        for op_type, fields in changes:
            self.tell(op_type, {**fields, "failed": True})
        raise OSError(number, os.strerror(number))

    @property
    def count(self) -> int:
        """How many ops were told."""
        return self._count

    def arrive(self) -> None:
        """Ask the gate for the next op, before it is known what that will be."""
        if self._gate is not None and not self.stopped:
            self._gate.before(self._count + 1)

    def event(self, op_type: type[t.Op], fields: Mapping[str, Any]) -> None:
        """An event that the subject tells; numbered like any op."""
        with self.lock:
            if self.stopped:
                return
            if self._gate is not None:
                self._gate.before(self._count + 1)
            self.tell(op_type, fields)

    def tell(self, op_type: type[t.Op], fields: Mapping[str, Any]) -> None:
        """Give the next number to a change that has happened, and emit it."""
        pending = self._nameless.get(fields.get("inode", -1))
        if pending is not None:
            pending.append((op_type, dict(fields)))
            return
        common = {"thread": self._thread(), "at": self.places.at(), "time_ns": time.time_ns()}
        self._waiting.append((op_type, {**common, **fields}))
        if self._telling:
            return  # a handler interrupted the loop below, which goes on with this one
        self._telling = True
        try:
            while self._waiting:
                next_type, next_fields = self._waiting.popleft()
                self._count += 1
                self._emit(next_type(n=self._count, **next_fields))
        finally:
            self._telling = False

    def _thread(self) -> int:
        number: int | None = getattr(self._local, "number", None)
        if number is None:
            number = self._local.number = self.threads
            self.threads += 1
        return number

    def note(self, text: str) -> tuple[Change, ...]:
        """Something happened that this recorder cannot see into. Returns no changes."""
        self.unseen[text] = None
        return ()

    def note_outside(self, target: Target) -> tuple[Change, ...]:
        """A file outside of the root was written. Returns no changes."""
        if self.places.matters(target):
            self.outside_writes[target.real] = None
        return ()

    def note_stranger(self, path: str) -> None:
        """A file that nobody here made was changed: its beginning was not seen."""
        self.note(f"{path} was made by something that this recorder does not see")

    # --- inodes ----------------------------------------------------------------------------------

    def number(self, status: os.stat_result) -> int | None:
        """The number of a real inode, where it is known."""
        known = self.numbers.get((status.st_dev, status.st_ino))
        if known is None and self._informed is not None:
            self.numbers = {**self._informed.news(), **self.numbers}
            known = self.numbers.get((status.st_dev, status.st_ino))
        return known

    def new(self, status: os.stat_result, path: str) -> int:
        """A number for a new inode, even where the kernel gives an old real one out again."""
        number = self.numbers[status.st_dev, status.st_ino] = self._next_number
        self._next_number += 1
        self._names[number] = path
        return number

    def forget(self, status: os.stat_result) -> None:
        """A file outside of the root has this real inode: what had it before is gone."""
        self.numbers.pop((status.st_dev, status.st_ino), None)

    def named(self, inode: int, path: str) -> None:
        """``path`` is now the latest name of an inode."""
        self._names[inode] = path

    def opened(self, descriptor: int, inode: int, path: str) -> None:
        """Remember by which path a descriptor was opened."""
        self._opened[descriptor] = inode, path

    def by_descriptor(self, descriptor: int, *, directories: bool = False) -> Known | None:
        """The known file (or directory) behind a descriptor. None for pipes, sockets and files outside."""
        status = os.stat(descriptor)
        if not (stat.S_ISREG(status.st_mode) or (directories and stat.S_ISDIR(status.st_mode))):
            return None
        inode = self.number(status)
        if inode is None:
            if status.st_dev == self._device:
                path = self.places.relative(descriptor_path(descriptor))
                if path:
                    self.note_stranger(path)
            return None
        return Known(descriptor, inode, self._path_of(descriptor, inode), status)

    def _path_of(self, descriptor: int, inode: int) -> str:
        opened = self._opened.get(descriptor)
        if opened is not None and opened[0] == inode:  # else it was closed, and the number given out again
            return opened[1]
        return self.places.relative(descriptor_path(descriptor)) or self._names.get(inode, "")

    def by_path(self, path: Any, dir_fd: int | None = None, *, follow: bool = True) -> Known | None:
        """The known node that a path or a descriptor names; None outside of the root."""
        if isinstance(path, int):
            return self.by_descriptor(path, directories=True)
        target = self.places.resolve(path, dir_fd, follow=follow)
        if target.path is None:
            return None
        return self.by_target(target)

    def by_target(self, target: Target) -> Known | None:
        """The known node at a target. Raises OSError where nothing is there."""
        assert target.path is not None
        status = os.lstat(target.real)
        inode = self.number(status)
        if inode is None:
            self.note_stranger(target.path)
            return None
        return Known(target.real, inode, target.path, status)

    # --- files without a name ----------------------------------------------------------------------

    def new_nameless(self, descriptor: int) -> tuple[Change, ...]:
        """A file of O_TMPFILE: no crash can show it, so nothing is told until a link gives it a name."""
        status = os.stat(descriptor)
        inode = self.new(status, "")
        self.opened(descriptor, inode, "")
        create = {"path": "", "inode": inode, "mode": stat.S_IMODE(status.st_mode), "time_ns": status.st_mtime_ns}
        self._nameless[inode] = [(t.Create, create)]
        return ()

    def tell_nameless(self, inode: int) -> None:
        """A nameless file is about to be linked: tell its history, before that happens."""
        for op_type, fields in self._nameless.pop(inode, ()):
            if self._gate is not None:
                self._gate.before(self._count + 1)
                if op_type is t.Write and self._gate.cut_bytes(self._count + 1, len(fields["data"])) is not None:
                    self.tell(op_type, fields)
                    self._gate.die()  # the bytes are in no name: cut or whole, the tree is the same
            self.tell(op_type, fields)


def _name_of(real: Callable[..., Any]) -> str:
    """The name of a function, or of the method that was bound to a file."""
    function = real.func if isinstance(real, functools.partial) else real
    return getattr(function, "__name__", "")


def parent_time_ns(target: Target) -> int:
    """The modification time of the directory that holds a target."""
    return os.stat(os.path.dirname(target.real)).st_mtime_ns


def write_sync(descriptor: int) -> tuple[bool, str]:
    """Whether a descriptor appends, and the ``sync`` of its writes: ``""``, ``"data"`` or ``"all"``."""
    if sys.platform == "win32":
        return False, ""
    import fcntl  # noqa: PLC0415 - Windows has none

    flags = REAL.fcntl(descriptor, fcntl.F_GETFL)
    all_of_it, data = getattr(os, "O_SYNC", 0), getattr(os, "O_DSYNC", 0)
    if all_of_it and flags & all_of_it == all_of_it:
        return bool(flags & os.O_APPEND), "all"
    return bool(flags & os.O_APPEND), "data" if flags & data else ""
