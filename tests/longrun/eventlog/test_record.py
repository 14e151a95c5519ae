"""Tests of longrun.eventlog.record: a line verifies itself, and gives back what it was given."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longrun.eventlog.errors import InvalidEvent
from longrun.eventlog.record import NO_SUM, BadLine, Draft, decode, encode, sum_of, version_of

TEXTS = st.text(st.characters(), max_size=20)  # lone surrogates and U+0000 are among them
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)


def draft(data: dict[str, Any], **fields: Any) -> Draft:
    form = {"seq": 3, "prev": NO_SUM, "mark": 1, "fence": 2, "time_ms": 0, "parent": None, "type": "note"}
    return Draft(**{**form, "data": data, **fields})


@given(st.dictionaries(TEXTS, JSON, max_size=4))
def test_any_json_comes_back(data: dict[str, Any]) -> None:
    """Also lone surrogates, U+0000, and integers of any length; in one line of ASCII."""
    line = encode(draft(data))
    assert line.isascii()
    assert b"\n" not in line
    assert decode(line).data == data


@pytest.mark.parametrize("value", ["\ud800", "\x00", 2**70, "x" * 2_000_000, "\u2028"])
def test_what_others_stumble_over_comes_back(value: Any) -> None:
    """A lone surrogate, a zero, a long number, 2 MB, and a line separator that is none."""
    assert decode(encode(draft({"v": value}))).data == {"v": value}


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {1, 2}, b"bytes", object()])
def test_what_is_no_json_is_refused(value: Any) -> None:
    """Before anything is written."""
    with pytest.raises(InvalidEvent, match="note: the data is no JSON"):
        encode(draft({"v": value}))


def test_every_flipped_bit_is_seen() -> None:
    """Each of them makes it a bad line."""
    line = encode(draft({"n": 1}))
    for bit in range(len(line) * 8):
        flipped = bytearray(line)
        flipped[bit // 8] ^= 1 << bit % 8
        with pytest.raises(BadLine):
            decode(bytes(flipped))


@pytest.mark.parametrize("cut", [0, 1, 30, -1])
def test_part_of_a_line_is_no_line(cut: int) -> None:
    """Wherever it ends."""
    with pytest.raises(BadLine):
        decode(encode(draft({"n": 1}))[:cut])


@pytest.mark.parametrize(
    ("field", "value"), [("seq", True), ("seq", 1.0), ("parent", "1"), ("type", 7), ("ignorable", 1), ("v", "1")]
)
def test_a_field_of_another_type_is_no_record(field: str, value: Any) -> None:
    """However well the sum fits."""
    form = json.loads(encode(draft({"n": 1})))
    del form["sum"]
    body = json.dumps({**form, field: value}, separators=(",", ":"))[:-1].encode()
    with pytest.raises(BadLine, match="no record"):
        decode(b'%b,"sum":"%b"}' % (body, sum_of(body).encode()))


def test_a_line_begins_with_its_version() -> None:
    """Else a newer one would be read by whoever knows only where to look for it."""
    form = json.loads(encode(draft({"n": 1})))
    del form["sum"]
    body = json.dumps({"seq": form.pop("seq"), **form}, separators=(",", ":")).encode()
    assert body.startswith(b'{"seq":3,"v":1,')
    with pytest.raises(BadLine, match="does not begin with its version"):
        decode(b'%b,"sum":"%b"}' % (body[:-1], sum_of(body[:-1]).encode()))


def test_the_version_can_be_read_though_nothing_else_can() -> None:
    """A newer program may have another sum, and other fields."""
    assert version_of(b'{"v":12,"checksum":"?"') == 12
    assert version_of(b"\0" * 40) is None
    assert version_of(encode(draft({}))) == 1
