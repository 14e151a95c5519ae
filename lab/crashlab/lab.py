"""The object that a subject's callables receive: its directory, and its ways to tell the lab things.

The lab plays the outside world: an effect is done the moment :meth:`Lab.effect` returns and no crash
takes it back. Usable from threads and tasks.
"""

from __future__ import annotations

import contextlib
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from crashlab import trace as t
from crashlab.errors import UsageError
from crashlab.values import encode

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path


class Sink(Protocol):
    """Where events go: the recorder while recording, the result pipe while recovering."""

    def __call__(self, event_type: type[t.Op], **fields: Any) -> None:
        """Take one event, durably enough to survive the death of this process."""


@dataclass(frozen=True, slots=True)
class EffectRecord:
    """One effect that the outside world has seen.

    ``counted`` is False where its key was known already, so that nothing was done. ``line`` is what a program
    wrote down to tell it.
    """

    name: str
    key: str | None
    detail: Mapping[str, Any]
    receipt: str
    counted: bool = True
    line: str = ""


@dataclass(eq=False)
class Lab:
    """What ``run``, ``resume``, ``open`` and ``check`` receive.

    ``dir`` is the directory of the subject, the same absolute path in every run and recovery.
    ``effects``, ``acked`` and ``expected`` are for ``check`` only: what the outside world has seen,
    what was acked before the crash, the uncrashed end. A recovery that could read them would not
    need its files.
    """

    dir: Path
    _sink: Sink
    _effects: list[EffectRecord] = field(default_factory=list)
    _acked: list[Any] = field(default_factory=list)
    _expected: Any = None
    _checking: bool = False
    _lock: threading.RLock = field(default_factory=threading.RLock, repr=False)

    @property
    def effects(self) -> list[EffectRecord]:
        """In ``check``: everything that the outside world has seen, oldest first."""
        self._only_in_check("effects", "To look an effect up, use lab.lookup.")
        return self._effects

    @property
    def acked(self) -> list[Any]:
        """In ``check``: the values acked before the crash, oldest first."""
        self._only_in_check("acked", "What was saved must be read from the files.")
        return self._acked

    @property
    def expected(self) -> Any:
        """In ``check``: the end of the uncrashed run, after ``view``."""
        self._only_in_check("expected", "The end must be reached from the files.")
        return self._expected

    def _only_in_check(self, name: str, instead: str) -> None:
        if not self._checking:
            text = f"lab.{name} is for check only: a program after a crash does not have it. {instead}"
            raise UsageError(text)

    @contextlib.contextmanager
    def checking(self, *, expected: Any = None) -> Iterator[None]:
        """For the lab: open what is for ``check`` only, while it runs."""
        if expected is not None:
            self._expected = expected
        self._checking = True
        try:
            yield
        finally:
            self._checking = False

    def records(self, name: str | None = None) -> list[EffectRecord]:
        """For code that plays the outside world: what it has seen, under ``name`` or altogether.

        A service that can be asked without a key (a mailbox that can be searched) answers from this.
        """
        with self._lock:
            return [each for each in self._effects if name in (None, each.name)]

    def effect(self, name: str, *, key: str | None = None, **detail: Any) -> str:
        """Do something to the outside world and return its receipt.

        An effect with a known ``key`` is done once: the first receipt comes back. Raises ValueError
        where that key was used with another name's details, as a real service would.
        """
        with self._lock:
            form = encode(detail)
            known = None if key is None else self._find(name, key)
            if known is not None and known.detail != form:
                text = f"effect {name!r} with key {key!r} was done with {known.detail}, now asked with {form}"
                raise ValueError(text)
            receipt = known.receipt if known else self._next_receipt(name)
            record = EffectRecord(name, key, form, receipt, counted=known is None)
            self._sink(t.Effect, name=name, key=key, detail=form, receipt=receipt, counted=record.counted)
            self._effects.append(record)
            return receipt

    def told(self, op_type: type[t.Op], fields: Mapping[str, Any]) -> None:
        """For programs that cannot call: an event as they wrote it down. Done is done, whatever they wrote."""
        if op_type is not t.Effect:
            self._sink(op_type, **fields)
            return
        with self._lock:
            known = None if fields["key"] is None else self._find(fields["name"], fields["key"])
            receipt = known.receipt if known else self._next_receipt(fields["name"])
            record = EffectRecord(**fields, receipt=receipt, counted=known is None)
            self._sink(op_type, **fields, receipt=receipt, counted=record.counted)
            self._effects.append(record)

    def _next_receipt(self, name: str) -> str:
        return f"{name}-{1 + sum(each.counted for each in self._effects)}"

    def lookup(self, name: str, *, key: str) -> str | None:
        """Ask the outside world: the receipt of the effect with this key, or None."""
        with self._lock:
            known = self._find(name, key)
            return None if known is None else known.receipt

    def unknown(self, name: str, *, key: str | None = None, **detail: Any) -> None:
        """Report that an effect may have happened and that a person must decide.

        Excuses zero or one occurrence, and only where the files cannot tell.
        """
        with self._lock:
            self._sink(t.Unknown, name=name, key=key, detail=encode(detail))

    def ack(self, value: Any = None) -> None:
        """Tell someone that ``value`` is saved: from here on no crash may lose it."""
        with self._lock:
            self._sink(t.Ack, value=encode(value))

    def save_point(self, name: str) -> None:
        """Say that the state on disk is complete here. A dotted name gives the scope: ``turn5.B``."""
        with self._lock:
            self._sink(t.SavePoint, name=name)

    def _find(self, name: str, key: str) -> EffectRecord | None:
        return next((each for each in self._effects if each.counted and (each.name, each.key) == (name, key)), None)

    @staticmethod
    def history(effects: Iterable[t.Effect]) -> list[EffectRecord]:
        """The record that the outside world has after these effects of a trace."""
        return [EffectRecord(op.name, op.key, op.detail, op.receipt, op.counted, op.line) for op in effects]
