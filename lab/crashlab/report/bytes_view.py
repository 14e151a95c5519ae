"""Bytes before and after a crash as lines of hexadecimal and ASCII, with the bytes that differ told apart."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from crashlab.report.model import Difference

LINE_BYTES = 16
_VISIBLE = range(0x20, 0x7F)
Run = tuple[str, bool]
"""Text of some bytes in a row, and whether they differ from the other side. Where that has ended, they do not."""


@dataclass(frozen=True)
class ByteLine:
    """Sixteen bytes of a file, before and after; where one side has ended, its runs are empty."""

    at: int
    before_hex: tuple[Run, ...]
    before_ascii: tuple[Run, ...]
    after_hex: tuple[Run, ...]
    after_ascii: tuple[Run, ...]


def byte_lines(part: Difference) -> list[ByteLine]:
    """The lines of one stretch.

    >>> from crashlab.report.model import Difference
    >>> line = byte_lines(Difference(at=0, before="4142", after="41"))[0]
    >>> line.before_ascii, line.after_hex
    ((('A', False), ('B', True)), (('41', False),))
    """
    before, after = bytes.fromhex(part.before), bytes.fromhex(part.after)
    lines = []
    for start in range(0, max(len(before), len(after)), LINE_BYTES):
        old, new = before[start : start + LINE_BYTES], after[start : start + LINE_BYTES]
        marks = [bool(old and new) and old[n : n + 1] != new[n : n + 1] for n in range(max(len(old), len(new)))]
        old_hex, old_ascii = _sides(old, marks)
        new_hex, new_ascii = _sides(new, marks)
        lines.append(ByteLine(part.at + start, old_hex, old_ascii, new_hex, new_ascii))
    return lines


def _sides(data: bytes, marks: Sequence[bool]) -> tuple[tuple[Run, ...], tuple[Run, ...]]:
    pairs = list(zip(data, marks, strict=False))
    as_hex, as_ascii = [], []
    for differs, group in groupby(pairs, key=lambda pair: pair[1]):
        members = bytes(byte for byte, _ in group)
        as_hex.append((members.hex(" "), differs))
        as_ascii.append(("".join(chr(byte) if byte in _VISIBLE else "·" for byte in members), differs))
    return tuple(as_hex), tuple(as_ascii)
