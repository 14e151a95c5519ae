"""Reading a log strictly: how far it is good, what it promised, and what the rest is.

*Good* is a record that verifies itself, continues number, sum and fence, has a known version, and that the grammar
allows. G is the last of the good prefix; W the highest promise that anything sound tells of: a slot of ``mark``, the
``mark`` of a line, also of one behind a bad one, or what a writer noted in ``lease``. What follows G is a *torn tail*
where G ≥ W: nobody was told of it. Where G < W it is *damage*. A crash leaves no other thing behind G than a torn tail:
a record of a number that is taken, or of the next number with another sum before it, is the work of a second writer or
of a tool, and refused whatever was promised.

Nothing is written here. Mark and lease are read before the log, so that a living writer's log is never behind them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NoReturn

from longrun.eventlog.errors import InvalidEvent, LogDamaged, LogUnsupported
from longrun.eventlog.events import FORMAT, SHAPES
from longrun.eventlog.grammar import Grammar
from longrun.eventlog.lease import promised_before
from longrun.eventlog.record import NO_SUM, VERSION, BadLine, decode, version_of
from longrun.eventlog.repair import Evidence
from longrun.eventlog.segments import LEASE_NAME, MARK_NAME, segment_numbers, segment_path, snapshot_numbers
from longrun.eventlog.shelf import Shelf
from longrun.eventlog.slots import NOTHING, read_slots
from longrun.eventlog.snapshot import NoSnapshot, Snapshot, load_snapshot, require_bound

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from longrun.eventlog.record import Record


@dataclass(eq=False)
class Scan:
    """What was read; ``tail`` is what stands behind the last good record.

    ``ends`` says that the last line has its LF. ``weakened``: no slot of the mark could be read, so that the marks in
    the records are all there is to go by. ``spare`` are next segments of 0 bytes.
    """

    directory: Path
    grammar: Grammar = field(default_factory=Grammar)
    records: Shelf = field(init=False)
    segment: int = 0
    size: int = 0
    tail: bytes = b""
    ends: bool = True
    promised: int = NOTHING
    weakened: bool = False
    spare: list[int] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.records = Shelf(self.directory)

    @property
    def good(self) -> int:
        """G: the seq of the last good record; -1 for none."""
        return self.grammar.seq - 1

    @property
    def evidence(self) -> Evidence:
        """What a repair may go by."""
        return Evidence(promised=None if self.weakened else self.promised, was_cut=bool(self.tail))

    @property
    def empty(self) -> bool:
        """Whether there is no session here."""
        return self.grammar.seq == 0


def follows(previous: Record | None, record: Record) -> str:
    """What is wrong with the place of ``record`` behind ``previous``; "" where it continues it."""
    seq, prev, fence = (0, NO_SUM, 1) if previous is None else (previous.seq + 1, previous.sum, previous.fence)
    if record.seq != seq:
        return f"seq {record.seq} in the place of {seq}"
    if record.prev != prev:
        return f"record {seq} of another history: it follows {record.prev}, not {prev}"
    return f"fence {record.fence} behind fence {fence}" if record.fence < fence else ""


def promise(scan: Scan, marks: list[int]) -> int:
    """W: the highest of the mark's slots and of the marks in all lines that verify themselves, behind a bad one too."""
    own = scan.records[-1].mark if len(scan.records) else NOTHING
    return max([own, *marks, *(record.mark for record in sound_lines(scan.tail))])


def sound_lines(data: bytes) -> list[Record]:
    """The records among the lines of ``data`` that verify themselves, wherever they belong."""
    found = []
    for line in data.split(b"\n"):
        try:
            found.append(decode(line))
        except BadLine:
            continue
    return found


def _up_to(newest: int) -> str:
    return "1 alone" if newest == 1 else f"1 to {newest}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """The reading, in pieces that a naive reader exchanges.

    * ``follows(previous, record)`` says what is wrong with the place of a record, "" for nothing.
    * ``promise(scan, marks)`` is W.
    * ``grammar()`` is the grammar before the first record.
    * ``bound(directory, snapshot)`` raises NoSnapshot unless a snapshot is of this log.
    """

    follows: Callable[[Record | None, Record], str] = follows
    promise: Callable[[Scan, list[int]], int] = promise
    grammar: Callable[[], Grammar] = Grammar
    bound: Callable[[Path, Snapshot], None] = require_bound

    def read(self, directory: Path) -> Scan:
        """What is there, from the newest snapshot that fits on. Raises LogDamaged or LogUnsupported."""
        return _Reading(self, Scan(directory, grammar=self.grammar())).whole(snapshots=True)

    def verify(self, directory: Path) -> Scan:
        """Everything, from the first record. Raises as :meth:`read`."""
        return _Reading(self, Scan(directory, grammar=self.grammar())).whole(snapshots=False)


class _Reading:
    """One pass over all segments."""

    def __init__(self, reader: Reader, scan: Scan) -> None:
        self._reader, self._scan = reader, scan
        self._line = 0
        self._reason = ""
        self._last: Record | None = None
        self._from = 0
        self._claims: list[Snapshot] = []
        self._noted = NOTHING

    def whole(self, *, snapshots: bool) -> Scan:
        """All of it. What was promised comes first: a living writer raises that after the log."""
        scan, directory = self._scan, self._scan.directory
        self._noted = promised_before(directory)
        marks = self._marks()
        numbers = segment_numbers(directory)
        while numbers and numbers[-1] and not segment_path(directory, numbers[-1]).stat().st_size:
            scan.spare.append(numbers.pop())
        if not numbers:
            self._require_nothing(marks)
            return scan
        first = self._from_snapshot() if snapshots else 0
        for place, number in enumerate(numbers):
            if number != place:
                scan.segment, self._line = place, 0
                self._refuse("missing", f"segment {place}", f"segment {number}", path=segment_path(directory, place))
            if number >= first:
                self._segment(number, last=number == numbers[-1])
        self._judge_tail(marks)
        return scan

    def _from_snapshot(self) -> int:
        """Go on from the newest snapshot that fits, at the end of what it knows; else from the beginning."""
        scan = self._scan
        for seq in snapshot_numbers(scan.directory):
            try:
                found = load_snapshot(scan.directory, seq, self._reader.grammar)
                self._claims.append(found)
                self._reader.bound(scan.directory, found)
            except (NoSnapshot, ValueError, KeyError, TypeError, IndexError) as error:
                scan.notes.append(f"snapshot {seq} is passed over: {error}")
                continue
            scan.grammar, scan.records, self._last = found.grammar, found.records, found.records[-1]
            scan.segment, scan.size, self._from = len(found.sizes) - 1, found.sizes[-1], found.sizes[-1]
            return scan.segment
        return 0

    def _marks(self) -> list[int]:
        """The numbers of the mark's sound slots; none where both are bad, or the file is gone.

        Where it holds lines of a log, as if the two had been exchanged, these are missed: no crash has put them there.
        """
        path = self._scan.directory / MARK_NAME
        data = path.read_bytes() if path.exists() else b""
        marks = read_slots(data)
        self._scan.weakened = not marks
        if not marks:
            self._noted = max([self._noted, *(line.seq for line in sound_lines(data))])
        return marks

    def _require_nothing(self, marks: list[int]) -> None:
        """There is no segment: right only where none was ever promised."""
        scan = self._scan
        has_mark, scan.weakened = (scan.directory / MARK_NAME).exists(), False
        if (has_mark and marks != [NOTHING] * len(marks)) or (has_mark and not marks):
            self._refuse("missing", "the log that the mark tells of", "no segment", path=scan.directory / MARK_NAME)
        if snapshot_numbers(scan.directory):
            self._refuse("missing", "the log that a snapshot tells of", "no segment", path=scan.directory)
        if self._noted > NOTHING:
            self._refuse("missing", "the log that the lease tells of", "no segment", path=scan.directory / LEASE_NAME)

    def _segment(self, number: int, *, last: bool) -> None:
        scan, at = self._scan, self._from
        with segment_path(scan.directory, number).open("rb") as file:
            file.seek(at)
            data = bytes(at) + file.read() if at else file.read()
        before = (scan.segment, scan.size)
        scan.segment, scan.size, self._from = number, at, 0
        self._line = sum(segment == number for segment, _ in scan.records.places) if at else 0
        while at < len(data):
            end = data.find(b"\n", at)
            line = data[at : end if end >= 0 else len(data)]
            self._line += 1
            if not self._line_is_good(line, (number, at), before):
                break
            scan.ends = end >= 0
            at = end + 1 if end >= 0 else len(data)
            scan.size = at
        scan.tail = data[at:]
        if not last and (scan.tail or not scan.ends):
            self._refuse("segment", "a sealed segment, whole", self._reason or "no LF at its end")

    def _line_is_good(self, line: bytes, place: tuple[int, int], before: tuple[int, int]) -> bool:
        """Take one line, if it is good; else ``_reason`` says what it is."""
        scan, first = self._scan, not len(self._scan.records)
        if first:
            self._require_version(version_of(line))
        try:
            record = decode(line)
        except BadLine as bad:
            return self._is_bad(self._shown(line, str(bad)))
        wrong = self._reader.follows(self._last, record)
        if wrong:
            return self._is_bad(wrong)
        self._require_known(line, record)
        try:
            scan.grammar.advance(record)
        except InvalidEvent as error:
            self._refuse("grammar", "a record that may come next", str(error))
        if record.type == "segment/start":
            self._check_seal(record, before)
        scan.records.put(record, place)
        self._last = record
        return True

    def _is_bad(self, reason: str) -> bool:
        self._reason = reason
        return False

    @staticmethod
    def _shown(line: bytes, reason: str) -> str:
        return f"{reason}: {len(line)} bytes, {line[:24]!r}"

    def _require_known(self, line: bytes, record: Record) -> None:
        self._require_version(version_of(line), f"record {record.seq} has ")
        if record.type not in SHAPES and not record.ignorable:
            self._newer(f"record {record.seq} is of the unknown type {record.type!r}, and may not be passed over")
        stored = record.data.get("format") if record.type == "session/start" and type(record.data) is dict else None
        if type(stored) is int and not 1 <= stored <= FORMAT:
            self._newer(f"format {stored}; this program reads {_up_to(FORMAT)}")

    def _require_version(self, version: int | None, where: str = "") -> None:
        """Raise LogUnsupported for a version that this program does not know; None is that of no record."""
        if version is not None and not 1 <= version <= VERSION:
            self._newer(f"{where}version {version}; this program reads {_up_to(VERSION)}")

    def _check_seal(self, record: Record, before: tuple[int, int]) -> None:
        """A later segment says how long the one before it is, and how it ends."""
        number, size = before
        last = self._last
        assert last is not None, "the grammar lets no log begin so"
        told = (record.data["segment"], record.data["before"].get("bytes"), record.data["before"].get("sum"))
        if told != (number + 1, size, last.sum):
            self._refuse("segment", f"segment {told[0]} behind {told[1]} bytes", f"segment {number} of {size} bytes")

    def _newer(self, what: str) -> NoReturn:
        raise LogUnsupported(segment_path(self._scan.directory, self._scan.segment), what)

    # --- behind the last good record ---------------------------------------------------------------

    def _judge_tail(self, marks: list[int]) -> None:
        scan = self._scan
        first = scan.records[0].sum if len(scan.records) else ""
        claimed = [snapshot.seq for snapshot in self._claims if snapshot.origin == first]
        scan.promised = max([self._reader.promise(scan, marks), *claimed, self._noted])
        self._refuse_strangers()
        if scan.good < scan.promised or scan.empty:
            kind = "bad-line" if scan.tail else "missing"
            found = self._reason or f"the end of the log, at record {scan.good}"
            self._refuse(kind, f"record {scan.good + 1} of {scan.promised} that are promised", found)

    def _refuse_strangers(self) -> None:
        """Raise LogDamaged for sound lines in the tail that no crash leaves there."""
        scan = self._scan
        if not scan.tail or (len(scan.records) and scan.tail.rstrip(b"\n") == self._last_line()):
            return  # the last line once more, as a tool leaves it that writes again what it has written
        previous = self._last
        for record in sound_lines(scan.tail):
            if previous is not None and record.fence < previous.fence:
                self._refuse("forked", f"no fence below {previous.fence}", f"record {record.seq}, fence {record.fence}")
            if record.seq <= scan.good:
                self._refuse("forked", f"record {scan.good + 1}", f"record {record.seq} once more")
            if record.seq == scan.good + 1:
                kind = "displaced" if previous is None or record.prev == previous.sum else "forked"
                self._refuse(kind, f"record {record.seq} right behind {record.prev}", self._reason)

    def _last_line(self) -> bytes:
        number, offset = self._scan.records.places[-1]
        return segment_path(self._scan.directory, number).read_bytes()[offset : self._scan.size].rstrip(b"\n")

    def _refuse(self, kind: str, expected: str, found: str, *, path: Path | None = None) -> NoReturn:
        scan = self._scan
        raise LogDamaged(
            path or segment_path(scan.directory, scan.segment),
            kind=kind,
            segment=scan.segment,
            line=self._line,
            byte=scan.size,
            expected=expected,
            found=found,
        )
