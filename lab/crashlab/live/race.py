"""Two live owners of one place, in real processes: one is stopped between two of its ops, while the other goes on.

The first owner runs the workload under a :class:`RaceGate` and stops right before the op after the chosen one:
whatever it has read, it has read, and only the change is still to come. The second owner does what a restarted
program does: a Subject resumes, a Store or Log loads and takes one more value. It may be stopped at an op too.

Both act on one outside world, an append-only :class:`OutsideRecord`: what one has done, the other can look up, and
all effects, calls and acks stand there in the order in which they happened.

Not modelled: a stop inside a single call, and inside what a C library or another process does.
"""

from __future__ import annotations

import contextlib
import json
import select
import sys
import threading
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

from crashlab import trace as t
from crashlab.lab import EffectRecord, Lab
from crashlab.record.patch import REAL
from crashlab.subject import Log, Store, Subject
from crashlab.values import canonical
from crashlab.workload import (
    Calls,
    close_handle,
    end_form,
    load_form,
    more_of,
    open_handle,
    stop_after,
    value_form,
    values_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from contextlib import AbstractContextManager
    from pathlib import Path

    from crashlab.directory import NUMBER
    from crashlab.lab import Sink
    from crashlab.record.python import Recorder

FIRST, SECOND = "first", "second"
NEVER = sys.maxsize
KEPT = (t.Effect, t.Unknown, t.Call, t.Ack)
"""Events that the outside record keeps."""
OPENING, OPENED, LOADING, LOADED = "opening", "opened", "loading", "loaded"
"""Marks of an owner of a Store or Log in the record."""
_READ_BYTES = 1 << 16


@dataclass
class RaceGate:
    """Stops its process once, after op ``after``: ``stop`` returns when it may go on. ``ended`` is called at its end.

    ``news`` gives the numbers of inodes that the other owner has made, as far as they are told.

    >>> stops = []
    >>> gate = RaceGate(2, lambda: stops.append("stopped"))
    >>> [(gate.before(n), len(stops))[1] for n in (1, 2, 3, 4)]
    [0, 0, 1, 1]
    """

    after: int
    stop: Callable[[], None]
    ended: Callable[[], object] | None = None
    news: Callable[[], NUMBER] = dict
    passed: bool = False

    def before(self, n: int) -> None:
        """Stop where op ``n`` is the first one after the chosen op."""
        if n > self.after and not self.passed:
            self.passed = True
            self.stop()

    def end(self) -> None:
        """The run is over: stop now where its last op was the chosen one, with all that it still holds."""
        if self.after != NEVER:
            self.before(NEVER)
        if self.ended is not None:
            self.ended()

    def cut_bytes(self, _n: int, _length: int) -> int | None:
        """No write is cut: both owners live."""
        return None

    def die(self) -> NoReturn:
        """Never called: nobody dies here."""
        raise AssertionError


class OutsideRecord:
    """What happened outside, in the order in which it happened: a file that both owners append to.

    A line is ``{"who": owner, "op": form}`` of an event, or ``{"who": owner, "mark": word}``. The file is opened by
    its path each time, with the interpreter's own functions: the recorder must not take it for the subject's.
    """

    def __init__(self, path: str, who: str) -> None:
        self._path, self._who = path, who
        self._lock = threading.RLock()
        self._file: Any = None

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Nobody else acts outside meanwhile. May be nested."""
        import fcntl  # noqa: PLC0415 - Windows has none, and everything that shows a report loads this module

        with self._lock:
            if self._file is not None:
                yield
                return
            self._file = REAL.FileIO(self._path, "ab+")
            try:
                fcntl.flock(self._file.fileno(), fcntl.LOCK_EX)
                yield
            finally:
                self._file.close()
                self._file = None

    def op(self, op: t.Op) -> None:
        """Append an event."""
        if isinstance(op, KEPT):
            self._append({"op": t.op_to_json(op)})

    def mark(self, word: str) -> None:
        """Append a mark of this owner."""
        self._append({"mark": word})

    def _append(self, line: dict[str, Any]) -> None:
        with self.held():
            self._file.write(json.dumps({"who": self._who, **line}).encode() + b"\n")

    def lines(self) -> list[dict[str, Any]]:
        """All lines so far."""
        with self.held():
            self._file.seek(0)
            return [json.loads(line) for line in self._file.readall().splitlines()]

    def effects(self) -> list[EffectRecord]:
        """What the outside world has seen, whoever did it."""
        ops = (t.op_from_json(line["op"]) for line in self.lines() if "op" in line)
        return Lab.history([op for op in ops if isinstance(op, t.Effect)])

    def last_call(self) -> str:
        """The value that was last begun to be saved, by whom ever, in canonical form; "" for none."""
        forms = [line["op"] for line in self.lines() if line.get("op", {}).get("op") == t.Call.KIND]
        return canonical(forms[-1]["value"]) if forms else ""


@dataclass(eq=False)
class SharedLab(Lab):
    """The lab of one of two owners: what is done outside, and looked up there, is one world for both.

    ``_arrive`` stops at the gate first, so that an effect is decided by what the world knows when it happens.
    """

    _world: OutsideRecord = field(kw_only=True)
    _arrive: Callable[[], AbstractContextManager[None]] = field(kw_only=True)

    def effect(self, name: str, *, key: str | None = None, **detail: Any) -> str:
        """As :meth:`crashlab.lab.Lab.effect`; a key that the other owner has used is known."""
        with self._lock, self._arrive(), self._world.held():
            self._effects[:] = self._world.effects()
            return super().effect(name, key=key, **detail)

    def lookup(self, name: str, *, key: str) -> str | None:
        """As :meth:`crashlab.lab.Lab.lookup`, of what either has done."""
        with self._lock:
            self._effects[:] = self._world.effects()
            return super().lookup(name, key=key)

    def records(self, name: str | None = None) -> list[EffectRecord]:
        """As :meth:`crashlab.lab.Lab.records`, of what either has done."""
        with self._lock:
            self._effects[:] = self._world.effects()
            return super().records(name)


def _numbers(told: Any, *, until_go: bool = False) -> NUMBER:
    """Those of the worker's lines that have come; waits for a whole one, or with ``until_go`` for the word to go on.

    A line that came before that word was for one that was frozen before it came to its gate.
    """
    said, lines = b"", list[Any]()
    while not lines or said or (until_go and not any(line["go"] for line in lines)):
        part = told.read(_READ_BYTES)
        if not part:  # the worker has died, and this process is about to
            break
        *whole, said = (said + part).split(b"\n")
        lines += map(json.loads, whole)
    return {(device, inode): number for line in lines for device, inode, number in line["numbers"]}


class Owner:
    """One owner in its own process: its gate, its lab, and what it does.

    ``form`` is ``{"who", "after", "go", "record", "nothing"}``: ``after`` the op to stop after or None, ``go`` a FIFO
    over which it is told to go on, ``record`` the file of the outside record. ``tell`` sends one message to the worker.
    """

    def __init__(
        self,
        form: Mapping[str, Any],
        directory: Path,
        recorder: Recorder,
        tell: Callable[[dict[str, Any]], None],
        *,
        stop_after_acks: int | None = None,
    ) -> None:
        self._recorder, self._tell = recorder, tell
        self._who, self._go, self._nothing = form["who"], form["go"], form["nothing"]
        self.gate = RaceGate(NEVER if form["after"] is None else form["after"], self._stop, self._told, self._news)
        self.world = OutsideRecord(form["record"], self._who)
        ends = stop_after_acks is not None and self._who == FIRST
        self._sink: Sink = stop_after(recorder.event, stop_after_acks or 0) if ends else recorder.event
        self.lab = SharedLab(directory, self._sink, _world=self.world, _arrive=recorder.arriving)

    def _told(self) -> None:
        self._tell({"numbers": self._recorder.numbers()})

    def _stop(self) -> None:
        """Say so, and wait for the word to go on; what the other has made meanwhile is then known by its numbers."""
        self._tell({"stopped": True, "numbers": self._recorder.numbers()})
        with REAL.FileIO(self._go, "rb") as waiting:
            self._recorder.learn(_numbers(waiting, until_go=True))

    def _news(self) -> NUMBER:
        """What was told to one that went on without having stood at its gate: it was frozen as it waited."""
        with REAL.FileIO(self._go, "rb") as told:
            poll = select.poll()
            poll.register(told, select.POLLIN)
            return _numbers(told) if poll.poll(0) else {}

    def act(self, subject: Store | Log | Subject) -> dict[str, Any]:
        """Do what this owner does.

        Returns ``{"end": form}`` of a Subject, which may raise instead. Of a Store or Log: ``what`` raised and
        what it ``raised`` (None where nothing did), and ``loaded``, what ``load`` gave the second owner.
        """
        with Calls() as call:
            if isinstance(subject, Subject):
                act = subject.run if self._who == FIRST else subject.resume or subject.run
                return {"end": end_form(subject, self.lab, call(act, self.lab))}
            told: dict[str, Any] = {"end": None, "what": "", "raised": None, "loaded": None}
            for what, deed in self._deeds(call, subject, told):
                try:
                    deed()
                except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever it raises is its answer, and is judged
                    return told | {"what": what, "raised": f"{type(error).__name__}: {error}"}
            return told

    def _deeds(
        self, call: Calls, subject: Store | Log, told: dict[str, Any]
    ) -> Iterator[tuple[str, Callable[[], object]]]:
        """One after the other what a Store or Log is asked for."""
        handles: list[Any] = []
        self.world.mark(OPENING)
        yield "open", lambda: handles.append(open_handle(call, subject, self.lab))
        self.world.mark(OPENED)
        name = "save" if isinstance(subject, Store) else "append"
        if self._who == FIRST:
            for value in values_of(subject):
                yield name, partial(self._write, call, subject, handles[0], value)
        else:
            yield "load", lambda: told.update(loaded=self._load(call, subject, handles[0]))
            value = more_of(subject, told["loaded"], avoid=self.world.last_call())
            yield name, partial(self._write, call, subject, handles[0], value)
        yield "close", lambda: close_handle(call, subject, handles[0])

    def _load(self, call: Calls, subject: Store | Log, handle: Any) -> dict[str, Any]:
        self.world.mark(LOADING)
        form = load_form(call, subject, handle, self._nothing)
        self.world.mark(LOADED)
        return form

    def _write(self, call: Calls, subject: Store | Log, handle: Any, value: Any) -> None:
        form = value_form(subject, value)
        self._sink(t.Call, name="save" if isinstance(subject, Store) else "append", value=form)
        call(subject.save if isinstance(subject, Store) else subject.append, handle, value)
        self._sink(t.Ack, value=form)
