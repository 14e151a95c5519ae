r"""The output of strace as calls: a stream of bytes comes in, whole system calls go out.

Wanted are the options ``-f -q -xx -y`` and absolute time stamps with nanoseconds. ``-xx`` writes every byte
of every string and path as ``\x61``, so that no name or data can hold a quote, a comma or a newline.
A line may be hundreds of megabytes long, for one large write: it is decoded piece by piece as it
arrives, and only the bytes that it means are kept.

Measured with strace 6.1: a call that another process interrupts is told in two parts, ``<unfinished ...>``
and ``<... write resumed>``; what is known at entry stands in the first one, flags of a new process included.
"""

from __future__ import annotations

import re
from binascii import unhexlify
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from crashlab.errors import LabError

if TYPE_CHECKING:
    from collections.abc import Iterator

LONG_BYTES = 1 << 18
_HEAD_BYTES = 100
_HEAD = re.compile(r"(\d+) +(\d+)\.(\d{9}) ")
_BEGUN = re.compile(rb"(\d+) +(\d+)\.(\d{9}) (\w+)\(")
_CALL = re.compile(r"(\w+)\((.*)\)\s+= (\S+)(.*)", re.DOTALL)
_NOT_SEEN = re.compile(r"(<\.\.\. )?\?\?\?[( ]")
"""What strace writes where its process died before it could be asked which call it was in. Measured."""
_RESUMED = re.compile(r"<\.\.\. (\w+) resumed>")
_UNFINISHED = " <unfinished ...>"
_NUMBER = re.compile(r"-?(0x[0-9a-f]+|\d+)")
_BRACKET = re.compile(r"[\[\](){},]")
_DESCRIPTOR_PATH = re.compile(r"\d+<([^>]*)>")


@dataclass(frozen=True, slots=True)
class Line:
    """One line. In ``text``, string number ``i`` stands as ``"i"``."""

    pid: int
    time_ns: int
    text: str
    strings: list[bytes]


@dataclass(slots=True)
class Call:
    """A system call that has begun (``returned`` is False) or ended.

    ``result`` is None where it failed, or did not return. ``seen`` is for the decoder: what others did meanwhile.
    """

    pid: int
    time_ns: int
    name: str
    args: list[str]
    strings: list[bytes]
    result: int | None = None
    returned: bool = False
    text: str = ""
    resumed: bool = False
    child: int | None = None
    seen: list[tuple[int | None, bool]] = field(default_factory=list)

    def number(self, position: int) -> int:
        """Argument ``position`` as a number: decimal or hexadecimal."""
        found = _NUMBER.match(self.args[position])
        if found is None:
            text = f"strace told argument {position} of {self.name} as {self.args[position]!r}; expected a number"
            raise LabError(text)
        return int(found[0], 16 if "0x" in found[0] else 10)

    def octal(self, position: int) -> int:
        """Argument ``position`` as permission bits, also behind a type as in ``S_IFIFO|0644``."""
        return int(self.args[position].rpartition("|")[2].strip() or "0", 8)

    def flags(self, position: int) -> set[str]:
        """The names in argument ``position``; none where the call was made without it."""
        return set(self.args[position].split("|")) if position < len(self.args) else set()

    def string(self, position: int) -> bytes | None:
        """Argument ``position`` as bytes; None for a pointer that is no string, as NULL."""
        found = re.match(r'@?"(\d+)"', self.args[position])
        return None if found is None else self.strings[int(found[1])]

    def told_path(self, position: int) -> str:
        """The path that strace added to the descriptor in argument ``position``; ``""`` where there is none."""
        found = _DESCRIPTOR_PATH.match(self.args[position])
        if found is None or not found[1].startswith("\\x"):
            return ""
        return _decoded(found[1].encode()).decode(errors="surrogateescape")

    @property
    def cut_short(self) -> bool:
        """Whether strace left a part of a string out."""
        return '"...' in self.text


class Lines:
    r"""Cuts a stream into lines.

    >>> [line.strings for line in Lines().feed(b'7 1.000000000 unlink("\\x61") = 0\n')]
    [[b'a']]
    """

    def __init__(self) -> None:
        self._rest = b""
        self._long: _LongLine | None = None

    def feed(self, chunk: bytes) -> Iterator[Line]:
        """The lines that end in ``chunk``."""
        if self._long is not None:
            end = chunk.find(b"\n")
            self._long.add(chunk if end < 0 else chunk[:end])
            if end < 0:
                return
            yield self._long.finish()
            self._long, chunk = None, chunk[end + 1 :]
        *whole, rest = (self._rest + chunk).split(b"\n")
        self._rest = rest
        for line in whole:
            yield _short_line(line)
        if len(rest) > LONG_BYTES:
            self._long, self._rest = _LongLine(), b""
            self._long.add(rest)

    def begun(self) -> tuple[int, int, str] | None:
        """Process, time and name of the call whose line has not ended yet; None where there is none."""
        head = self._rest if self._long is None else self._long.head
        found = _BEGUN.match(head)
        return (
            None if found is None else (int(found[1]), int(found[2]) * 1_000_000_000 + int(found[3]), found[4].decode())
        )

    def left_over(self) -> bool:
        """Whether the stream ended inside a line."""
        return bool(self._rest) or self._long is not None


class _LongLine:
    """A line that is decoded while it comes in."""

    def __init__(self) -> None:
        self.head = b""
        self._texts: list[str] = []
        self._strings: list[list[bytes]] = []
        self._inside = False
        self._carry = b""

    def add(self, data: bytes) -> None:
        self.head = self.head or data[:_HEAD_BYTES]
        data, self._carry = self._carry + data, b""
        pieces = data.split(b'"')
        for position, piece in enumerate(pieces):
            if position:
                self._turn()
            if not self._inside:
                self._texts.append(piece.decode("latin-1"))
                continue
            last = position == len(pieces) - 1
            whole = len(piece) - len(piece) % 4 if last else len(piece)
            self._strings[-1].append(_decoded(piece[:whole]))
            self._carry = piece[whole:]

    def _turn(self) -> None:
        self._inside = not self._inside
        if self._inside:
            self._texts.append(f'"{len(self._strings)}"')
            self._strings.append([])

    def finish(self) -> Line:
        strings: list[bytes] = []
        for position, pieces in enumerate(self._strings):
            self._strings[position] = []
            strings.append(b"".join(pieces))
        return _line("".join(self._texts), strings)


def _short_line(line: bytes) -> Line:
    pieces = line.split(b'"')
    strings = [_decoded(piece) for piece in pieces[1::2]]
    text = pieces[0].decode("latin-1")
    for position, piece in enumerate(pieces[2::2]):
        text += f'"{position}"{piece.decode("latin-1")}'
    return _line(text, strings)


def _line(text: str, strings: list[bytes]) -> Line:
    head = _HEAD.match(text)
    if head is None:
        shown = f"strace wrote a line that the lab cannot read: {text[:200]!r}"
        raise LabError(shown)
    return Line(int(head[1]), int(head[2]) * 1_000_000_000 + int(head[3]), text[head.end() :], strings)


def _decoded(written: bytes) -> bytes:
    try:
        return unhexlify(written.replace(b"\\x", b""))
    except ValueError as error:
        text = f"strace wrote a string that the lab cannot read: {written[:80]!r}"
        raise LabError(text) from error


# --- calls -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class End:
    """A process or thread has ended, or (``by_exec_of``) became the thread of that number by an exec."""

    pid: int
    code: int | None = None
    signal: str = ""
    by_exec_of: int | None = None


class Calls:
    """Puts the parts of calls together again."""

    def __init__(self) -> None:
        self.in_flight: dict[int, Call] = {}
        self._parts: dict[int, Line] = {}

    def take(self, line: Line) -> Call | End | None:
        """The call that this line begins or ends, or the end of a process; None for anything else."""
        text = line.text
        if text.startswith("+++"):
            return self._end(line.pid, text)
        if text.startswith("---") or _NOT_SEEN.match(text):
            return None
        if text.endswith(_UNFINISHED):
            part = Line(line.pid, line.time_ns, text[: -len(_UNFINISHED)], line.strings)
            self._parts[line.pid] = part
            call = self.in_flight[line.pid] = begun_call(part)
            return call
        begun = None
        if resumed := _RESUMED.match(text):
            line, begun = self._resume(line, resumed)
        return _ended_call(line, begun)

    def _resume(self, line: Line, resumed: re.Match[str]) -> tuple[Line, Call]:
        first, begun = self._parts.pop(line.pid, None), self.in_flight.pop(line.pid, None)
        if first is None or begun is None or begun.name != resumed[1]:
            text = f"strace told the end of a {resumed[1]} whose beginning did not come: its output has a gap"
            raise LabError(text)
        shift = len(first.strings)
        rest = re.sub(r'"(\d+)"', lambda found: f'"{int(found[1]) + shift}"', line.text[resumed.end() :])
        return Line(line.pid, line.time_ns, first.text + rest, first.strings + line.strings), begun

    def _end(self, pid: int, text: str) -> End:
        if found := re.match(r"\+\+\+ superseded by execve in pid (\d+)", text):
            other = int(found[1])
            self._parts[pid] = self._parts.pop(other)
            self.in_flight[pid] = self.in_flight.pop(other)
            return End(pid, by_exec_of=other)
        self._parts.pop(pid, None)
        self.in_flight.pop(pid, None)
        if found := re.match(r"\+\+\+ exited with (\d+)", text):
            return End(pid, code=int(found[1]))
        found = re.match(r"\+\+\+ killed by (\w+)", text)
        return End(pid, signal=found[1] if found else text)


def begun_call(line: Line) -> Call:
    """A call of which only the beginning is known."""
    name, _, args = line.text.partition("(")
    return Call(line.pid, line.time_ns, name, split(args.rstrip(", ")), line.strings, text=line.text)


def _ended_call(line: Line, begun: Call | None) -> Call:
    found = _CALL.match(line.text)
    if found is None:
        text = f"strace wrote a call that the lab cannot read: {line.text[:200]!r}"
        raise LabError(text)
    number = _NUMBER.match(found[3])
    result = None if number is None or found[3].startswith("-") else _result(number[0])
    call = Call(line.pid, line.time_ns, found[1], split(found[2]), line.strings, result, returned=True, text=line.text)
    if begun is not None:
        call.child, call.seen, call.resumed = begun.child, begun.seen, True
    return call


def _result(text: str) -> int:
    if "0x" in text:
        return int(text, 16)
    return int(text, 8) if len(text) > 1 and text.startswith("0") else int(text)


def split(text: str) -> list[str]:
    """Arguments at the top level, without the blanks around them.

    >>> split('3, [{iov_base="0", iov_len=2}], 1')
    ['3', '[{iov_base="0", iov_len=2}]', '1']
    """
    parts, depth, start = [], 0, 0
    for found in _BRACKET.finditer(text):
        if found[0] in "[({":
            depth += 1
        elif found[0] in "])}":
            depth -= 1
        elif depth == 0:
            parts.append(text[start : found.start()].strip())
            start = found.end()
    last = text[start:].strip()
    return [*parts, last] if last or parts else []
