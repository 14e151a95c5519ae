"""Damage that only a format can have: another version number, a key twice, bytes of another format.

A file counts as JSON where it is one object, or one object a line. Positions are those of the first
object, or of the last line with the word ``last``. Nothing here knows what the fields mean: a field
is a version number where it has one of the usual names and holds a whole number.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

VERSION_NAMES = frozenset(
    ("version", "schema_version", "schemaVersion", "format_version", "formatVersion", "protocol", "format", "schema")
)
FAR_VERSION = 999
"""A version number that no program has come to yet."""

KEYS_AT_MOST = 16
"""So many members of one object get a second value."""

NESTED_DEPTH = 100_000
"""Deeper than any parser's stack: one that recurses must refuse, and not die."""

FOREIGN: dict[str, bytes] = {
    "null": b"null",
    "list": b"[]",
    "object": b"{}",
    "text": b"This is a note, and none of your files.\n",
    "png": b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4\x89",
    "sqlite": b"SQLite format 3\x00\x10\x00\x01\x01\x00\x40\x20\x20" + bytes(76),
    "gzip": b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\xff\x03\x00\x00\x00\x00\x00\x00\x00\x00\x00",
}
"""Contents of files that other programs write, by name; the first three are JSON, but of nobody's making."""

_DECODER = json.JSONDecoder()
_BLANK = " \t\r\n"


@dataclass(frozen=True, slots=True)
class Member:
    """One member of a JSON object: its key, also as it is written, its value, and where the value stands."""

    key: str
    written: bytes
    value: Any
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Found:
    """One JSON object in a file: its members, and the place of its closing brace."""

    members: tuple[Member, ...]
    close: int


def objects(data: bytes) -> tuple[Found, ...]:
    """The first and the last object of a file that is one JSON object, or one a line; else nothing.

    >>> [[member.key for member in found.members] for found in objects(b'{"a": 1}')]
    [['a']]
    """
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return ()
    text = data.decode("latin-1")  # one character a byte, so that places in the text are places in the file
    whole = _object(text, 0)
    if whole is not None and not text[whole.close + 1 :].strip(_BLANK):
        return (whole,)
    starts = [0, *(at + 1 for at, character in enumerate(text) if character == "\n" and at + 1 < len(text))]
    found = [_object(text, start) for start in dict.fromkeys((starts[0], starts[-1]))]
    return tuple(each for each in found if each is not None) if all(found) else ()


def _object(text: str, start: int) -> Found | None:
    try:
        return Found(*_members(text, _after_blanks(text, start)))
    except (ValueError, IndexError, RecursionError):  # no JSON object stands here
        return None


def _members(text: str, at: int) -> tuple[tuple[Member, ...], int]:
    found: list[Member] = []
    at = _after_blanks(text, _after(text, at, "{"))
    while text[at] != "}":
        if found:
            at = _after_blanks(text, _after(text, at, ","))
        _after(text, at, '"')
        key, close = _DECODER.raw_decode(text, at)
        written = text[at:close].encode("latin-1")
        start = _after_blanks(text, _after(text, _after_blanks(text, close), ":"))
        value, end = _DECODER.raw_decode(text, start)
        found.append(Member(key, written, value, start, end))
        at = _after_blanks(text, end)
    return tuple(found), at


def _after(text: str, at: int, sign: str) -> int:
    if text[at] != sign:
        message = f"{sign} expected at {at}"
        raise ValueError(message)
    return at + 1


def _after_blanks(text: str, at: int) -> int:
    while text[at] in _BLANK:
        at += 1
    return at


def versions(data: bytes) -> Iterator[str]:
    """Numbers that no such file of this program holds where it says its version."""
    number = _version(data)
    if number is not None:
        others = dict.fromkeys((number.value + 1, number.value - 1, FAR_VERSION))
        yield from (str(other) for other in others if other >= 0 and other != number.value)


def with_version(data: bytes, number: str) -> bytes | None:
    """The same file, but of version ``number``; None where it has no version."""
    member = _version(data)
    return None if member is None else data[: member.start] + number.encode() + data[member.end :]


def _version(data: bytes) -> Member | None:
    members = [member for found in objects(data)[:1] for member in found.members]
    return next((each for each in members if each.key in VERSION_NAMES and type(each.value) is int), None)


def twice(data: bytes) -> Iterator[str]:
    """Which members can be given a second value: ``0`` the first of the first object, ``last-0`` of the last."""
    for position, found in enumerate(objects(data)):
        lead = "last-" if position else ""
        yield from (f"{lead}{number}" for number in range(min(len(found.members), KEYS_AT_MOST)))


def with_key_twice(data: bytes, which: str) -> bytes | None:
    """The same file, with another value for one key at the end of its object, which most parsers then take."""
    place, _, number = which.rpartition("-")
    found = objects(data)
    position = 1 if place == "last" else 0
    if place not in ("", "last") or not number.isdecimal() or position >= len(found):
        return None
    chosen = found[position]
    if int(number) >= len(chosen.members):
        return None
    member = chosen.members[int(number)]
    second = b"," + member.written + b":" + json.dumps(_other(member.value)).encode()
    return data[: chosen.close] + second + data[chosen.close :]


def _other(value: Any) -> Any:
    """A value of the same type that is not this one."""
    match value:
        case bool():
            return not value
        case int() | float():
            return value + 1
        case str():
            return f"{value}x"
        case list():
            return value[:-1] if value else [None]
        case dict():
            return {} if value else {"x": None}
    return 0
