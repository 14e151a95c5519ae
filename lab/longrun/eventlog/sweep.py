"""All single damages of one session, and what a design makes of each: the small exhaustive judge of this lesson.

It is beside crashlab and not instead of it: a lab that takes any program cannot know what a line is. Every bit of the
log and of the mark the other way round, every truncation, each line removed, doubled, exchanged with the next, each
replaced by one of a newer version: thousands of states, judged in this process. A design must refuse, or give just the
records that were promised; what it refuses it must leave as it is.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from longrun.eventlog.errors import LogDamaged, LogUnsupported
from longrun.eventlog.record import BadLine, decode, sum_of
from longrun.eventlog.segments import MARK_NAME, segment_path, session_directory
from longrun.eventlog.subjects import SESSION

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from longrun.eventlog.design import Reads

KINDS = ("bit", "mark-bit", "cut", "removed", "doubled", "exchanged", "newer")


@dataclass(frozen=True, slots=True)
class State:
    """One damaged session: the bytes of the log and of the mark, and the name of the damage."""

    name: str
    log: bytes
    mark: bytes


def states(log: bytes, mark: bytes, kinds: Sequence[str] = KINDS) -> Iterator[State]:
    """Every single damage of these kinds."""
    for kind in kinds:
        yield from _MAKERS[kind](log, mark)


def _bits(log: bytes, mark: bytes) -> Iterator[State]:
    for bit in range(len(log) * 8):
        yield State(f"bit {bit}", _flipped(log, bit), mark)


def _mark_bits(log: bytes, mark: bytes) -> Iterator[State]:
    for bit in range(len(mark) * 8):
        yield State(f"mark-bit {bit}", log, _flipped(mark, bit))


def _flipped(data: bytes, bit: int) -> bytes:
    at = bit // 8
    return data[:at] + bytes([data[at] ^ (1 << bit % 8)]) + data[at + 1 :]


def _cuts(log: bytes, mark: bytes) -> Iterator[State]:
    for size in range(len(log)):
        yield State(f"cut {size}", log[:size], mark)


def _removed(log: bytes, mark: bytes) -> Iterator[State]:
    lines = log.splitlines(keepends=True)
    for at in range(len(lines)):
        yield State(f"removed {at}", b"".join(lines[:at] + lines[at + 1 :]), mark)


def _doubled(log: bytes, mark: bytes) -> Iterator[State]:
    lines = log.splitlines(keepends=True)
    for at in range(len(lines)):
        yield State(f"doubled {at}", b"".join(lines[: at + 1] + lines[at:]), mark)


def _exchanged(log: bytes, mark: bytes) -> Iterator[State]:
    lines = log.splitlines(keepends=True)
    for at in range(len(lines) - 1):
        pair = [lines[at + 1], lines[at]]
        yield State(f"exchanged {at}", b"".join(lines[:at] + pair + lines[at + 2 :]), mark)


def _newer(log: bytes, mark: bytes) -> Iterator[State]:
    """No damage: what a newer program may have written."""
    lines = log.splitlines(keepends=True)
    for at, line in enumerate(lines):
        body = line[: line.rindex(b',"sum"')].replace(b'{"v":1,', b'{"v":2,', 1)
        newer = b'%b,"sum":"%b"}\n' % (body, sum_of(body).encode())
        yield State(f"newer {at}", b"".join([*lines[:at], newer, *lines[at + 1 :]]), mark)


_MAKERS: dict[str, Callable[[bytes, bytes], Iterator[State]]] = {
    "bit": _bits,
    "mark-bit": _mark_bits,
    "cut": _cuts,
    "removed": _removed,
    "doubled": _doubled,
    "exchanged": _exchanged,
    "newer": _newer,
}


def judge(root: Path, state: State, promised: Sequence[bytes], reader: Reads) -> str:
    """What comes of one state: ``same``, ``refused``, or what is wrong, in the words of crashlab's kinds.

    ``promised`` are the lines that must be there; the session below ``root`` is made anew.
    """
    directory = session_directory(root, SESSION)
    directory.mkdir(parents=True, exist_ok=True)
    segment_path(directory, 0).write_bytes(state.log)
    (directory / MARK_NAME).write_bytes(state.mark)
    for path in directory.iterdir():  # what another reader may have left of the state before
        if path.name not in (segment_path(directory, 0).name, MARK_NAME):
            path.unlink()
    try:
        scan = reader.read(directory)
        found = [record.sum for record in scan.records]
    except (LogDamaged, LogUnsupported):
        kept = {path.name: path.read_bytes() for path in directory.iterdir()}
        there = kept == {segment_path(directory, 0).name: state.log, MARK_NAME: state.mark}
        return "refused" if there else "evidence-destroyed"
    wanted = [decode(line).sum for line in promised]
    if found == wanted:
        return "same"
    if not found:
        return "silent-reset"
    return "lost" if found == wanted[: len(found)] else "diverged"


def sweep(root: Path, log: bytes, mark: bytes, reader: Reads, kinds: Sequence[str] = KINDS) -> Counter[str]:
    """How many states came out how. ``log`` is sound, and all of it is promised."""
    promised = log.splitlines()
    try:
        for line in promised:
            decode(line)
    except BadLine as error:
        text = f"the log to damage must be sound: {error}"
        raise ValueError(text) from error
    return Counter(judge(root, state, promised, reader) for state in states(log, mark, kinds))
