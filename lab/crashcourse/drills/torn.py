"""Drill torn-or-damaged: whether a log is whole, torn at its end, or damaged, by its text and the number in its mark.

Every cut, every lost line of a batch, one wrong bit in every character, every missing line of a log of six records.
The lines are those of lesson 7; a test compares what is right here with the reader of that lesson.
"""

from __future__ import annotations

import random
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

from crashcourse.drills.drill import Drill, State, called
from longrun.eventlog.record import NO_SUM, Draft, decode, encode, sum_of
from longrun.messages import parse_strict

if TYPE_CHECKING:
    from collections.abc import Iterator

WHOLE, TAIL, DAMAGE = "whole", "tail", "damage"
SESSION = "s"
MARKS = (-1, -1, 1, 2, 2, 2)
"""The mark in each record: 0 and 1 were promised together, then 2 alone, then 3, 4 and 5 were one batch."""
BEFORE, ALL = 2, 5
"""What the file mark says while the batch is written, and afterwards."""
_TEXT = 12
_END = len(',"sum":""}') + len(NO_SUM)


def lines(seed: int) -> list[str]:
    """Six records: the beginning of a session, a note alone, and a batch of three."""
    chance = random.Random(seed)  # noqa: S311 - the same twin for the same seed
    first: list[tuple[str, dict[str, Any]]]
    first = [
        ("session/start", {"session_id": SESSION, "format": 1, "created_ms": 0}),
        ("writer/start", {"writer": "w", "reason": "new"}),
    ]
    texts = ["".join(chance.choices("abcdefgh", k=_TEXT)) for _ in MARKS[2:]]
    found: list[str] = []
    for seq, (kind, data) in enumerate([*first, *(("note", {"text": text}) for text in texts)]):
        prev = decode(found[-1].encode()).sum if found else NO_SUM
        draft = Draft(seq, prev, MARKS[seq], 1, 0, None, kind, data, ignorable=kind == "note")
        found.append(encode(draft).decode())
    return found


def _text(some: list[str]) -> str:
    return "".join(line + "\n" for line in some)


def states(seed: int) -> dict[str, Iterator[State]]:
    """All states, by their case."""
    every = lines(seed)
    return {"cuts": _cuts(every), "lost": _lost(every), "damage": _damage(every)}


def _cuts(every: list[str]) -> Iterator[State]:
    """A process dies while it writes the batch: the file ends anywhere in it, and nobody was told."""
    text = _text(every)
    for size in range(len(_text(every[: BEFORE + 1])), len(text) + 1):
        yield called(f"cut@{size}", "read", text[:size], BEFORE)


def _lost(every: list[str]) -> Iterator[State]:
    """The power goes while the batch is written: any of its lines may be zero bytes, or the file not yet so long."""
    for size in range(4):
        for some in combinations(range(BEFORE + 1, len(every)), size):
            for length in range(BEFORE + 1, len(every) + 1):
                kept = ["\0" * len(line) if at in some else line for at, line in enumerate(every)][:length]
                name = f"zeros@{','.join(map(str, some)) or 'none'}of{length}"
                yield called(name, "read", _text(kept), BEFORE)
                yield called(f"{name}-lf", "read", _text(kept).removesuffix("\n"), BEFORE)


def _damage(every: list[str]) -> Iterator[State]:
    """All of it was promised, or as much as stands in the records, and then something is gone or otherwise."""
    text = _text(every)
    for at, character in enumerate(text):
        bad = text[:at] + chr(ord(character) ^ 1) + text[at + 1 :]
        yield called(f"bit@{at}", "read", bad, ALL)
    for size in range(0, len(text), 7):
        yield called(f"short@{size}", "read", text[:size], ALL)
    for mark, name in ((ALL, ""), (BEFORE, "-batch-open"), (None, "-no-mark")):
        for at in range(len(every)):
            kept = [*every[:at], *every[at + 1 :]]
            yield called(f"gone@{at}{name}", "read", _text(kept), mark)
            kept[at:at] = ["\0" * len(every[at])]
            yield called(f"zero@{at}{name}", "read", _text(kept), mark)


# --- what is right, and what is not ---------------------------------------------------------------


class Line(NamedTuple):
    """What a reader needs of a record."""

    seq: int
    prev: str
    mark: int
    sum: str


def record_of(line: str) -> Line | None:
    """The record of a line; None where it does not fit its sum. Of a learner's line, too, which has another text."""
    body, quoted = line[:-_END], line[-_END:]
    try:
        own = sum_of(body.encode("latin-1"))
        if quoted != f',"sum":"{own}"}}':
            return None
        form = parse_strict(f"{body}}}")
        return Line(int(form["seq"]), str(form["prev"]), int(form["mark"]), own)
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


def _split(text: str) -> list[str]:
    found = text.split("\n")
    return found[:-1] if not found[-1] else found


def _good(some: list[str], *, in_place: bool = True) -> int:
    number, prev = 0, NO_SUM
    for line in some:
        record = record_of(line)
        if record is None or (in_place and (record.seq, record.prev) != (number, prev)):
            break
        number, prev = number + 1, record.sum
    return number


def _promised(text: str, mark: int | None) -> int:
    sound = [record.mark for record in map(record_of, _split(text)) if record is not None]
    return max([-1 if mark is None else mark, *sound])


def _verdict(good: int, there: int, promised: int) -> list[Any]:
    if promised >= good:
        return [DAMAGE, good]
    return [TAIL if good < there else WHOLE, good]


def read(text: str, mark: int | None) -> list[Any]:
    """The verdict, and how many records are good."""
    some = _split(text)
    return _verdict(_good(some), len(some), _promised(text, mark))


def skip_bad_line(text: str, _mark: int | None) -> list[Any]:
    """Passes over what it cannot read."""
    return [WHOLE, sum(record_of(line) is not None for line in _split(text))]


def cut_anything(text: str, _mark: int | None) -> list[Any]:
    """Whatever is bad is a torn tail."""
    some = _split(text)
    return _verdict(_good(some), len(some), -1)


def last_line_only(text: str, mark: int | None) -> list[Any]:
    """Takes nothing but the last line for a torn tail."""
    verdict, good = read(text, mark)
    return [DAMAGE if len(_split(text)) > good + 1 else verdict, good]


def no_seq_check(text: str, mark: int | None) -> list[Any]:
    """Each line fits its sum; whether it has its place is not looked at."""
    some = _split(text)
    return _verdict(_good(some, in_place=False), len(some), _promised(text, mark))


def mark_file_alone(text: str, mark: int | None) -> list[Any]:
    """Does not look at what the records say of what was promised."""
    some = _split(text)
    return _verdict(_good(some), len(some), -1 if mark is None else mark)


DRILL = Drill(
    functions={"read": read},
    states=states,
    naive={
        "naive_skip_bad_line": {"read": skip_bad_line},
        "naive_cut_anything": {"read": cut_anything},
        "naive_last_line_only": {"read": last_line_only},
        "naive_no_seq_check": {"read": no_seq_check},
        "naive_mark_file_alone": {"read": mark_file_alone},
    },
)
