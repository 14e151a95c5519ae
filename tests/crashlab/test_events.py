"""Lines of the events file: what they mean, and that a wrong one is quoted."""

from __future__ import annotations

import pytest

from crashlab import trace as t
from crashlab.errors import UsageError
from crashlab.events import LIMIT_BYTES, Events, parse_line, write_line
from crashlab.lab import Lab


@pytest.mark.parametrize(
    ("line", "op_type", "fields"),
    [
        (b"effect mail key=order-7 to=ada", t.Effect, {"name": "mail", "key": "order-7", "detail": {"to": "ada"}}),
        (b"effect 'a b' to='c d'\r", t.Effect, {"name": "a b", "key": None, "detail": {"to": "c d"}}),
        (b"unknown mail key=k", t.Unknown, {"name": "mail", "key": "k", "detail": {}}),
        (b"ack 3", t.Ack, {"value": 3}),
        (b"ack", t.Ack, {"value": None}),
        (b"ack it's done", t.Ack, {"value": "it's done"}),
        (b'ack {"n": [1]}', t.Ack, {"value": {"n": [1]}}),
        (b"save-point turn5.B", t.SavePoint, {"name": "turn5.B"}),
        (b'{"effect": "mail", "key": "k", "n": 7}', t.Effect, {"name": "mail", "key": "k", "detail": {"n": 7}}),
        (b'{"ack": {"$x": 1}}', t.Ack, {"value": {"$dict": [["$x", 1]]}}),
        (b'{"crashlab": "call", "name": "save", "value": [1]}', t.Call, {"name": "save", "value": [1]}),
        (b'{"save-point": "A"}', t.SavePoint, {"name": "A"}),
    ],
)
def test_a_line_is_an_event(line: bytes, op_type: type[t.Op], fields: dict[str, object]) -> None:
    """Both forms of every event; an effect keeps its line."""
    kept = {"line": line.decode().strip()} if op_type is t.Effect else {}
    assert parse_line(line) == (op_type, {**fields, **kept})
    op_type(n=1, **fields)


@pytest.mark.parametrize(
    "line",
    [
        *(b"efect mail", b"effect", b"effect mail to", b"effect mail a=1 a=2", b"save-point", b"save-point a b"),
        *(
            b"call save",
            b'{"call": "save", "value": [1]}',
            b'{"crashlab": "bogus"}',
            b'{"effect": 1}',
            b'{"effect": "a", "key": 7}',
            b"{",
            b'{"ack": 1, "effect": "a"}',
            b"{}",
        ),
        *(b'{"ack": 1, "more": 2}', b"effect 'mail", b"\xff\xfe", b'{"effect": ""}'),
    ],
)
def test_a_wrong_line_is_quoted(line: bytes) -> None:
    """The error shows the line and the forms that would do."""
    with pytest.raises(UsageError) as raised:
        parse_line(line)
    assert repr(line.decode(errors="backslashreplace")) in str(raised.value)
    assert "save-point NAME" in str(raised.value)


def test_effects_are_done_as_the_lab_does_them(tmp_path: object) -> None:
    """Receipts, known keys and what counts are those of Lab.effect for the same effects."""
    told: list[t.Op] = []
    lab = Lab(tmp_path, lambda op_type, **fields: told.append(op_type(n=len(told) + 1, **fields)))  # type: ignore[arg-type]  # no directory is used
    lines = [b"mail key=a to=x", b"mail to=x", b"log key=a", b"mail key=a to=x", b"mail key=b"]
    for line in lines:
        name, *words = line.decode().split()
        lab.effect(name, **dict(word.split("=") for word in words))  # type: ignore[arg-type]  # the key is one of them
    events = Events()
    found = events.feed(b"".join(b"effect " + line + b"\n" for line in lines))
    assert [op_type(n=n, **{**fields, "line": ""}) for n, (op_type, fields) in enumerate(found, 1)] == told
    assert [fields["line"].encode() for _, fields in found] == [b"effect " + line for line in lines]


def test_a_known_key_with_other_details_is_refused() -> None:
    """As a real service would."""
    with pytest.raises(UsageError, match="key 'a' was done with"):
        Events().feed(b"effect mail key=a to=x\neffect mail key=a to=y\n")


def test_lines_in_pieces() -> None:
    """Several lines in one write, and one line in several; a last line without its end is an error."""
    events = Events()
    assert [op_type for op_type, _ in events.feed(b"ack 1\n\nsave-point A\nac")] == [t.Ack, t.SavePoint]
    with pytest.raises(UsageError, match="line without an end: 'ac'"):
        events.close()
    assert events.feed(b"k 2\n") == [(t.Ack, {"value": 2})]
    events.close()
    with pytest.raises(UsageError, match="longer than"):
        events.feed(b"x" * (LIMIT_BYTES + 1))


def test_what_the_lab_wrote_comes_back_with_all_its_fields() -> None:
    """Values are in tagged form already, and an effect has its receipt: neither is done a second time."""
    effect = {"name": "mail", "key": "k", "detail": {"to": {"$bytes": "aGk="}}, "receipt": "mail-7", "counted": False}
    call = {"name": "save", "value": {"$dict": [["$x", 1]]}}
    lines = write_line(t.Effect, effect) + write_line(t.Call, call) + write_line(t.Ack, {"value": None})
    assert Events().feed(lines) == [(t.Effect, effect), (t.Call, call), (t.Ack, {"value": None})]
