"""Exercise 7.1: eight logs that lie there after something went wrong, and two readers of one more.

``correct`` and ``last_line_only`` are subjects of crashlab: the same three batches on the log of lesson 7, read by its
own reader, and by one that takes nothing but a bad last line for a torn tail. Where a power loss spoils a page in the
middle of a batch, its neighbours may be whole: the second reader then refuses what nobody was ever told of.
"""

from __future__ import annotations

import dataclasses
import random
from typing import TYPE_CHECKING, Any

from longrun.eventlog.design import DESIGN
from longrun.eventlog.errors import LogDamaged
from longrun.eventlog.record import NO_SUM, Draft, decode, encode
from longrun.eventlog.scan import Reader
from longrun.eventlog.segments import MARK_NAME, segment_path
from longrun.eventlog.slots import fresh
from longrun.eventlog.subjects import SESSION, bare

if TYPE_CHECKING:
    from pathlib import Path

    from crashlab import Log
    from longrun.eventlog.scan import Scan

PUBLIC_SEED = 1
WHOLE, TAIL, DAMAGE = "whole", "tail", "damage"
NO_MARK = b"\0" * len(fresh())
_LONG, _SHORT, _TEXT = 5_000, 20, 40


class LastLineOnly:
    """Takes one bad line at the end for a torn tail, and any other for damage."""

    def read(self, directory: Path) -> Scan:
        """What is there. Raises LogDamaged where more than the last line is bad."""
        scan = Reader().read(directory)
        if b"\n" in scan.tail.rstrip(b"\n"):
            raise LogDamaged(
                segment_path(directory, scan.segment),
                kind="bad-line",
                segment=scan.segment,
                line=len(scan.records) + 1,
                byte=scan.size,
                expected="a bad line at the very end",
                found="a bad line with others behind it",
            )
        return scan


def readers(seed: int) -> tuple[Log, Log]:
    """The two, on texts of that seed: each has the same sizes, and so the same crash states."""
    chance = random.Random(seed)  # noqa: S311 - the same twin for the same seed
    sizes = ([_SHORT], [_LONG, _SHORT, _LONG], [_SHORT])
    values = tuple([{"text": "".join(chance.choices("abcdefgh ij", k=size))} for size in batch] for batch in sizes)
    naive = dataclasses.replace(DESIGN, reader=LastLineOnly())
    return bare(name="the log's own reader", values=values), bare(naive, name="last line only", values=values)


correct, last_line_only = readers(PUBLIC_SEED)


# --- the eight logs -------------------------------------------------------------------------------


def lines(seed: int) -> list[bytes]:
    """Seven records: a session of two, a note that was promised alone, three of one batch, and one more note."""
    chance = random.Random(seed)  # noqa: S311 - the same twin for the same seed
    texts = ["".join(chance.choices("abcdefgh", k=_TEXT)) for _ in range(5)]
    start: dict[str, Any] = {"session_id": SESSION, "format": 1, "created_ms": 0}
    first: list[tuple[str, dict[str, Any]]]
    first = [("session/start", start), ("writer/start", {"writer": "w", "reason": "new"})]
    kinds: list[tuple[str, dict[str, Any]]] = [*first, *(("note", {"text": text}) for text in texts)]
    found: list[bytes] = []
    for seq, (kind, data) in enumerate(kinds):
        mark = (-1, -1, 1, 2, 2, 2, 5)[seq]
        prev = decode(found[-1]).sum if found else NO_SUM
        ignorable = kind == "note"
        draft = Draft(seq, prev, mark, 1, 0, None, kind, data, ignorable=ignorable)
        found.append(encode(draft))
    return found


def logs(seed: int) -> dict[str, tuple[bytes, bytes]]:
    """The bytes of each log and of its mark, by its letter."""
    every = lines(seed)
    six = every[:6]
    bad = [b"\0" * len(line) for line in every]
    half = six[5][: len(six[5]) // 2]
    return {
        "a": (b"\n".join(six), fresh(5)),
        "b": (b"\n".join([*six[:5], half]), fresh(2)),
        "c": (b"\n".join([*six[:5], half]), fresh(5)),
        "d": (_ended([*six[:3], bad[3], *six[4:]]), fresh(2)),
        "e": (_ended([*six[:3], bad[3], *every[4:]]), NO_MARK),
        "f": (_ended(six[:3]), fresh(5)),
        "g": (_ended(six[:3]), fresh(2)),
        "h": (_ended(six[:3]) + b"".join(bad[3:6]), fresh(2)),
    }


def _ended(some: list[bytes]) -> bytes:
    return b"".join(line + b"\n" for line in some)


def verdict_of(log: bytes, mark: bytes, folder: Path) -> str:
    """What the reader of lesson 7 makes of a log that is put into this empty folder."""
    segment_path(folder, 0).write_bytes(log)
    (folder / MARK_NAME).write_bytes(mark)
    try:
        scan = Reader().read(folder)
    except LogDamaged:
        return DAMAGE
    return TAIL if scan.tail else WHOLE
