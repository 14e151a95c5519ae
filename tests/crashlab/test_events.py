"""Lines of the events file: what programs may write, and what they are told otherwise."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crashlab import trace as t
from crashlab.errors import UsageError
from crashlab.events import parse_line, write_line

TEXTS = st.text(min_size=1)


@pytest.mark.parametrize(
    ("line", "op_type", "fields"),
    [
        ("effect mail key=order-7 to=ada", t.Effect, {"name": "mail", "key": "order-7", "detail": {"to": "ada"}}),
        ("effect mail", t.Effect, {"name": "mail", "key": None, "detail": {}}),
        ("effect mail to='ada l' at=", t.Effect, {"name": "mail", "key": None, "detail": {"to": "ada l", "at": ""}}),
        ("unknown mail key=a=b", t.Unknown, {"name": "mail", "key": "a=b", "detail": {}}),
        ("save-point turn5.B", t.SavePoint, {"name": "turn5.B"}),
        ("ack 3", t.Ack, {"value": 3}),
        ("ack", t.Ack, {"value": None}),
        ("ack three of them", t.Ack, {"value": "three of them"}),
        ('ack {"n": 1}', t.Ack, {"value": {"n": 1}}),
        ('{"effect": "mail", "key": "k", "n": 1}', t.Effect, {"name": "mail", "key": "k", "detail": {"n": 1}}),
        ('{"save-point": "A"}', t.SavePoint, {"name": "A"}),
        ('{"ack": [1, 2]}', t.Ack, {"value": [1, 2]}),
    ],
)
def test_a_line_is_an_event(line: str, op_type: type[t.Op], fields: dict[str, Any]) -> None:
    """Words as in a shell, or an object."""
    assert parse_line(line.encode() + b"\n") == (op_type, fields)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b"ack 3", "has no end"),
        (b"\n", "needs a name"),
        (b"efect mail\n", "'efect' is no event"),
        (b"call save\n", "'call' is no event"),
        (b"effect\n", "effect needs a name"),
        (b"effect mail ada\n", "only key=value"),
        (b"effect mail to='ada\n", "No closing quotation"),
        (b"save-point A b=1\n", "nothing else"),
        (b'{"effect": 3}\n', "must be a text"),
        (b'{"effect": "mail", "key": 3}\n', "a key must be a text"),
        (b'{"effect": "mail"\n', "delimiter"),
        (b"{}\n", "no event"),
        (b'{"crashlab": "bogus"}\n', "'bogus' is no event"),
        (b"ack \xff\n", "decode"),
        (b'{"ack": ' + b"[" * 100_000 + b"\n", "no event"),
    ],
)
def test_a_line_that_is_none_is_quoted_with_what_was_expected(line: bytes, why: str) -> None:
    """Bad input is never dropped in silence."""
    with pytest.raises(UsageError, match="such as: effect mail") as caught:
        parse_line(line)
    assert why in str(caught.value)


@given(name=TEXTS, key=st.none() | TEXTS, detail=st.dictionaries(TEXTS, TEXTS | st.integers()), counted=st.booleans())
def test_the_lab_s_own_lines_come_back_whole(name: str, key: str | None, detail: dict[str, Any], counted: bool) -> None:
    """An effect with its receipt, as a traced Python process writes it down."""
    fields = {"name": name, "key": key, "detail": detail, "receipt": "mail-1", "counted": counted}
    assert parse_line(write_line(t.Effect, fields)) == (t.Effect, fields)
