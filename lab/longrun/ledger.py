"""The ledger ``effects.jsonl``: what was done outside, appended right after it was done.

One JSON object a line, each with a checksum, each synced before anything else happens. Whole records
are never removed, by no rewind either. A last line that did not arrive whole is a *torn tail* and is
cut off at opening, but only beyond ``seen``, the number of records that a checkpoint has counted:
up to there a bad line is damage, and damage is refused.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol

from longrun.errors import Damaged
from longrun.files import sync_directory, write_all
from longrun.messages import canonical, parse_strict
from longrun.tools import args_digest

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from typing import Self

    from longrun.protocol import Checkpoint, OpenCall

LEDGER_NAME = "effects.jsonl"
Outcome = Literal["done", "unknown", "gave_up", "absent"]
_OUTCOMES = ("done", "unknown", "gave_up", "absent")
_TYPES: dict[str, type] = {
    "n": int,
    "run_id": str,
    "timeline": str,
    "writer_epoch": int,
    "key": str,
    "tool": str,
    "args_digest": str,
    "tool_use_id": str,
    "outcome": str,
    "result": str,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One act: what is known of it. ``n`` counts from 1; ``result`` is the text that the model got."""

    n: int
    run_id: str
    timeline: str
    writer_epoch: int
    key: str
    tool: str
    args_digest: str
    tool_use_id: str
    outcome: Outcome
    result: str

    def line(self) -> bytes:
        """The record as a line of the file."""
        form = {name: getattr(self, name) for name in _TYPES}
        form["checksum"] = _checksum(form)
        return canonical(form).encode() + b"\n"


def _checksum(form: dict[str, Any]) -> str:
    return hashlib.sha256(canonical(form).encode()).hexdigest()


def record_of(state: Checkpoint, call: OpenCall, outcome: Outcome, result: str) -> Record:
    """What is known of the act of ``call``; its number is given where it is appended."""
    assert call.key is not None, "a read is no act"
    return Record(
        n=0,
        run_id=state.run_id,
        timeline=state.timeline,
        writer_epoch=state.writer_epoch,
        key=call.key,
        tool=call.name,
        args_digest=args_digest(call.input),
        tool_use_id=call.id,
        outcome=outcome,
        result=result,
    )


class Acts(Protocol):
    """What the loop asks of a ledger. A naive one keeps its records elsewhere, or not at all."""

    @property
    def durable(self) -> bool:
        """Whether a record outlives this process, so that anyone may be told of it."""

    @property
    def records(self) -> Sequence[Record]:
        """All records, oldest first."""

    def append(self, record: Record) -> None:
        """Add one record, durable when this returns."""

    def latest(self, key: str) -> Record | None:
        """What is known last of this act."""

    def unknown(self) -> list[Record]:
        """The acts whose outcome nobody knows, oldest first."""

    def close(self) -> None:
        """Give back what is held."""


@dataclass(eq=False)
class Ledger:
    """The open ledger of one run. The one writer holds it; it is not shared between threads."""

    durable: ClassVar[bool] = True
    path: Path
    _descriptor: int
    _size: int = 0
    records: list[Record] = field(default_factory=list)
    _latest: dict[str, Record] = field(default_factory=dict)

    @classmethod
    def of_run(cls, directory: Path, saved: Checkpoint | None) -> Self:
        """The ledger that belongs to ``saved``; a new one after the very first save. Raises Damaged."""
        path = directory / LEDGER_NAME
        if saved is None:
            return cls.create(path)
        if saved.seq == 1 and not path.exists():  # later it can only have been lost
            sync_directory(directory)  # a killed process may have left the checkpoint's name in the page cache only:
            return cls.create(path)  # a ledger that outlived it would be one without a checkpoint
        return cls.open(path, seen=saved.ledger_seen)

    @classmethod
    def create(cls, path: Path) -> Self:
        """A new empty ledger, durable before anything can be recorded. Raises FileExistsError."""
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o644)
        os.fsync(descriptor)
        sync_directory(path.parent)
        return cls(path, descriptor)

    @classmethod
    def open(cls, path: Path, *, seen: int) -> Self:
        """The ledger as it lies there, a torn tail cut off. Raises Damaged, and then changes nothing.

        What was read is synced before it is used: a killed process may have left a whole record that
        only the page cache holds, and no checkpoint may count it before the disk does.
        """
        try:
            data = path.read_bytes()
        except FileNotFoundError as error:
            raise Damaged(path, "the ledger is gone, but the checkpoint knows of one") from error
        records, size = read_records(path, data, seen=seen)
        descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
        try:
            if size != len(data):
                os.ftruncate(descriptor, size)
            os.fsync(descriptor)
        except OSError:
            os.close(descriptor)
            raise
        return cls(path, descriptor, size, records, {record.key: record for record in records})

    def append(self, record: Record) -> None:
        """Add one record, durable when this returns. A failure restores the old length and raises."""
        line = record.line()
        try:
            self._write(line)
        except OSError:
            with contextlib.suppress(OSError):  # the first failure is the one to report
                os.ftruncate(self._descriptor, self._size)
                os.fsync(self._descriptor)
            raise
        self._size += len(line)
        self.records.append(record)
        self._latest[record.key] = record

    def _write(self, line: bytes) -> None:
        write_all(self._descriptor, line)
        os.fsync(self._descriptor)

    def latest(self, key: str) -> Record | None:
        """What is known last of this act."""
        return self._latest.get(key)

    def unknown(self) -> list[Record]:
        """The acts whose outcome nobody knows, oldest first."""
        return [record for record in self._latest.values() if record.outcome == "unknown"]

    def close(self) -> None:
        """Give the descriptor back."""
        os.close(self._descriptor)


open_ledger = Ledger.of_run


def read_records(path: Path, data: bytes, *, seen: int) -> tuple[list[Record], int]:
    """The records in ``data``, and the length of the file without a torn tail. Raises Damaged."""
    lines = data.split(b"\n")
    tail = lines.pop()
    whole = len(data) - len(tail)
    if not tail and len(lines) > seen and b"\x00" in lines[-1]:
        # A page of the last line never reached the disk and reads as zeros; JSON holds no zero byte.
        whole -= len(lines.pop()) + 1
    records: list[Record] = []
    for number, line in enumerate(lines, 1):
        records.append(_read_line(path, line, number))
    if len(records) < seen:
        raise Damaged(path, f"{len(records)} whole records, but the checkpoint has counted {seen}")
    return records, whole


def _read_line(path: Path, line: bytes, number: int) -> Record:
    try:
        form = parse_strict(line.decode("ascii"))
        checksum = form.pop("checksum")
        sound = form.keys() == _TYPES.keys() and all(type(form[name]) is kind for name, kind in _TYPES.items())
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        raise Damaged(path, f"line {number} is no record ({error})") from error
    if not sound or form["outcome"] not in _OUTCOMES:
        raise Damaged(path, f"line {number} has other fields than a record")
    if checksum != _checksum(form) or form["n"] != number:
        raise Damaged(path, f"line {number} does not fit its checksum and number")
    return Record(**form)
