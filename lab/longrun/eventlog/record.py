r"""One record of a log, as a line of JSON that verifies itself and its place.

``sum``, always last, is the start of the SHA-256 of the raw bytes before ``,"sum"``: so no canonical form of JSON is
needed, and a reader in any language checks a line with nothing but a hash. ``prev`` is the sum of the record before:
with it a line verifies its place too. ASCII only, NaN refused; lone surrogates, U+0000 and long numbers pass.

>>> line = encode(Draft(seq=0, prev=NO_SUM, mark=-1, fence=1, time_ms=7, parent=None, type="note", data={"a": "é"}))
>>> line
b'{"v":1,"seq":0,"prev":"0000000000000000","mark":-1,"fence":1,"time_ms":7,"type":"note","data":{"a":"\\u00e9"},"sum":"d75ab7819dfc5926"}'
>>> decode(line).data
{'a': 'é'}
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any, NamedTuple, NoReturn

from longrun.eventlog.errors import InvalidEvent
from longrun.messages import parse_strict

VERSION = 1
"""Of a line, which begins with it. A higher one is read by a newer program; there is none before 1."""
NO_SUM = "0" * 16
"""``prev`` of the first record."""
_SUM_CHARACTERS = 16
_TAIL = re.compile(rb',"sum":"([0-9a-f]{16})"\}\Z')
_TAIL_BYTES = len(',"sum":""}') + _SUM_CHARACTERS
_VERSION = re.compile(rb'\{"v":([0-9]{1,9}),')
_ENCODER = json.JSONEncoder(ensure_ascii=True, allow_nan=False, separators=(",", ":"))
_PLACE = ("seq", "mark", "fence", "time_ms")


class Draft(NamedTuple):
    """A record before it has a sum. ``parent`` is of surface records alone."""

    seq: int
    prev: str
    mark: int
    fence: int
    time_ms: int
    parent: int | None
    type: str
    data: dict[str, Any]
    surface: bool = False
    ignorable: bool = False


class Record(NamedTuple):
    """A record as it was read: of an unknown type too. ``line`` is what stands in the file, without its end."""

    seq: int
    prev: str
    mark: int
    fence: int
    time_ms: int
    parent: int | None
    type: str
    data: dict[str, Any]
    ignorable: bool
    sum: str


class BadLine(Exception):  # noqa: N818 - it names the line; only the reader sees it
    """A line that is no whole record. The text says why."""


def sum_of(data: bytes) -> str:
    """The sum of the bytes of a line before its sum."""
    return hashlib.sha256(data).hexdigest()[:_SUM_CHARACTERS]


def encode(draft: Draft) -> bytes:
    """The line of a record, without its LF. Raises InvalidEvent where the data is no JSON."""
    form: dict[str, Any] = {"v": VERSION, "seq": draft.seq, "prev": draft.prev, "mark": draft.mark}
    form |= {"fence": draft.fence, "time_ms": draft.time_ms}
    if draft.surface:
        form["parent"] = draft.parent
    form |= {"type": draft.type, "data": draft.data}
    if draft.ignorable:
        form["ignorable"] = True
    try:
        body = _ENCODER.encode(form)[:-1].encode("ascii")
    except (TypeError, ValueError, RecursionError) as error:
        text = f"{draft.type}: the data is no JSON ({error})"
        raise InvalidEvent(text) from error
    return b'%b,"sum":"%b"}' % (body, sum_of(body).encode())


def version_of(line: bytes) -> int | None:
    """The version that a line claims, whether or not the rest can be read; None where it claims none."""
    found = _VERSION.match(line)
    return int(found[1]) if found else None


def decode(line: bytes) -> Record:
    """The record of a line, without its LF. Raises BadLine unless it verifies itself; its place is not looked at."""
    found = _TAIL.search(line, max(0, len(line) - _TAIL_BYTES))
    if found is None:
        text = "a line without a sum"
        raise BadLine(text)
    if found[1].decode() != sum_of(line[:-_TAIL_BYTES]):
        text = "a line that does not fit its sum"
        raise BadLine(text)
    try:
        form = parse_strict(line.decode("ascii"))
        if version_of(line) != form["v"]:
            _no_record("it does not begin with its version")
        return _record(form)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        text = f"a line that is no record ({error})"
        raise BadLine(text) from error


def _no_record(text: str) -> NoReturn:
    raise ValueError(text)


def _record(form: dict[str, Any]) -> Record:
    if any(type(form[name]) is not int for name in _PLACE):
        _no_record("a number is none")
    parent, ignorable = form.get("parent"), form.get("ignorable", False)
    if type(form["type"]) is not str or type(parent) not in (int, type(None)) or type(ignorable) is not bool:
        _no_record("a field is of another type")
    return Record(
        form["seq"],
        form["prev"],
        form["mark"],
        form["fence"],
        form["time_ms"],
        parent,
        form["type"],
        form["data"],
        ignorable,
        form["sum"],
    )
