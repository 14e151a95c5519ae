"""The records of a session as a sequence by seq: those behind a snapshot are read from the log when they are asked for.

A record that is read so verifies itself and its number; its neighbours are not looked at. ``verify`` reads all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, overload

from longrun.eventlog.errors import LogDamaged
from longrun.eventlog.record import BadLine, Record, decode
from longrun.eventlog.segments import segment_path

if TYPE_CHECKING:
    from pathlib import Path


class Shelf(Sequence[Record]):
    """Records 0 to ``len - 1``. ``places`` has segment and offset of each; ``base`` of them stay in their files."""

    def __init__(self, directory: Path, places: list[tuple[int, int]] | None = None) -> None:
        self.directory = directory
        self.places: list[tuple[int, int]] = places or []
        self.base = len(self.places)
        self._late: list[Record] = []

    def __len__(self) -> int:
        return self.base + len(self._late)

    @overload
    def __getitem__(self, at: int) -> Record: ...

    @overload
    def __getitem__(self, at: slice) -> list[Record]: ...

    def __getitem__(self, at: int | slice) -> Record | list[Record]:
        """One record, or a list. Raises LogDamaged where a file does not hold it."""
        if isinstance(at, slice):
            return [self[each] for each in range(*at.indices(len(self)))]
        seq = at + len(self) if at < 0 else at
        if not 0 <= seq < len(self):
            raise IndexError(at)
        return self._late[seq - self.base] if seq >= self.base else self._read(seq)

    def put(self, record: Record, place: tuple[int, int]) -> None:
        """One more, at the end."""
        self._late.append(record)
        self.places.append(place)

    def line(self, seq: int) -> Record:
        """The record that stands in the place of ``seq``. Raises BadLine where none does."""
        number, offset = self.places[seq]
        try:
            with segment_path(self.directory, number).open("rb") as file:
                file.seek(offset)
                return decode(file.readline().rstrip(b"\n"))
        except FileNotFoundError as error:
            raise BadLine(str(error)) from error

    def _read(self, seq: int) -> Record:
        number, offset = self.places[seq]
        path = segment_path(self.directory, number)
        try:
            record = self.line(seq)
            if record.seq == seq:
                return record
            found = f"record {record.seq}"
        except BadLine as error:
            found = str(error)
        raise LogDamaged(
            path, kind="bad-line", segment=number, line=0, byte=offset, expected=f"record {seq}", found=found
        )
