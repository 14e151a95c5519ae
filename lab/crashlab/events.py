"""Events that a program of any language tells: lines that it appends to the file ``$CRASHLAB_EVENTS``.

::

    effect mail key=order-7 to=ada        {"effect": "mail", "key": "order-7", "to": "ada"}
    unknown mail key=order-7              {"unknown": "mail", "key": "order-7"}
    ack 3                                 {"ack": 3}
    save-point A                          {"save-point": "A"}

In the short form every detail is a text, and what is acked is read as JSON where it is JSON. A line
becomes an event when its end is written; lines that are written at once are several events. What the lab
itself writes, which calls a subject in another process, has all its fields: :func:`write_line`.
"""

from __future__ import annotations

import json
import os
import shlex
from typing import TYPE_CHECKING, Any

from crashlab import trace as t
from crashlab.errors import UsageError
from crashlab.values import encode

if TYPE_CHECKING:
    from collections.abc import Mapping

Event = tuple[type[t.Op], dict[str, Any]]
_TYPES: dict[str, type[t.Op]] = {each.KIND: each for each in t.EVENTS}
LIMIT_BYTES = 1 << 20
NOT_APPENDED = (
    "the program emptied or replaced its events file, and with it what it had told before: append to "
    '"$CRASHLAB_EVENTS", as a shell does with >>'
)
"""What is said of a program that does: its effects cannot be counted."""
_OWN = "crashlab"
_FORMS = "effect NAME [key=KEY] [WORD=TEXT …], unknown NAME …, ack VALUE, save-point NAME, or a JSON object"


def parse_line(line: bytes) -> Event:
    """The type and the fields of one event, without receipt. Raises UsageError, which quotes the line.

    An effect also has its ``line``, which a program that looks up what it has done meets again after a crash.

    >>> parse_line(b"effect mail to=ada")[1]
    {'name': 'mail', 'key': None, 'detail': {'to': 'ada'}, 'line': 'effect mail to=ada'}
    >>> parse_line(b'{"ack": 3}')
    (<class 'crashlab.trace.Ack'>, {'value': 3})
    """
    try:
        text = line.decode().strip()
        return _of_json(json.loads(text), text) if text.startswith("{") else _of_words(text)
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        shown = line[:200].decode(errors="backslashreplace")
        message = f"the events file has a line that is no event: {shown!r}: {error}. Write one of: {_FORMS}"
        raise UsageError(message) from error


def write_line(event_type: type[t.Op], fields: Mapping[str, Any]) -> bytes:
    """One event of the lab's own, with all its fields, as a line.

    >>> parse_line(write_line(t.SavePoint, {"name": "A"}))
    (<class 'crashlab.trace.SavePoint'>, {'name': 'A'})
    """
    return json.dumps({_OWN: event_type.KIND, **fields}).encode() + b"\n"


def _of_words(text: str) -> Event:
    kind, _, rest = text.partition(" ")
    if kind not in _TYPES or kind == t.Call.KIND:
        found = f"it begins with {kind!r}"
        raise ValueError(found)
    if kind == t.Ack.KIND:
        return t.Ack, {"value": encode(_json_or_text(rest.strip()))}
    words = shlex.split(rest)
    if not words or (kind == t.SavePoint.KIND and len(words) > 1):
        found = f"{kind} needs one name"
        raise ValueError(found)
    if kind == t.SavePoint.KIND:
        return t.SavePoint, {"name": words[0]}
    detail = {}
    for word in words[1:]:
        name, equals, value = word.partition("=")
        if not equals or not name or name in detail:
            found = f"{word!r} is no NAME=TEXT, or comes twice"
            raise ValueError(found)
        detail[name] = value
    return _outside(_TYPES[kind], words[0], detail, text)


def _json_or_text(text: str) -> Any:
    try:
        return json.loads(text) if text else None
    except ValueError:
        return text


def _of_json(form: Mapping[str, Any], text: str) -> Event:
    if _OWN in form:
        return _TYPES[form[_OWN]], {key: value for key, value in form.items() if key != _OWN}
    kinds = [kind for kind in _TYPES if kind in form and kind != t.Call.KIND]
    if len(kinds) != 1:
        found = f"it has {len(kinds)} of {', '.join(_TYPES)}"
        raise ValueError(found)
    kind, rest = kinds[0], {key: value for key, value in form.items() if key != kinds[0]}
    if kind in (t.Effect.KIND, t.Unknown.KIND):
        return _outside(_TYPES[kind], form[kind], rest, text)
    if rest:
        found = f"{sorted(rest)} does not belong to {kind}"
        raise ValueError(found)
    if kind == t.Ack.KIND:
        return t.Ack, {"value": encode(form[kind])}
    return _TYPES[kind], {"name": _text(form[kind], kind)}


def _outside(op_type: type[t.Op], name: Any, detail: dict[str, Any], text: str) -> Event:
    key = detail.pop("key", None)
    if key is not None:
        key = _text(key, "key")
    line = {"line": text} if op_type is t.Effect else {}
    return op_type, {"name": _text(name, op_type.KIND), "key": key, "detail": encode(detail), **line}


def _text(value: Any, what: str) -> str:
    if not isinstance(value, str) or not value:
        found = f"{what} is {value!r}; expected a text"
        raise TypeError(found)
    return value


class Events:
    """The events of one run, with the outside world that gives receipts and knows keys."""

    def __init__(self) -> None:
        self._rest = b""
        self._known: dict[tuple[str, str], Event] = {}
        self._counted = 0

    def feed(self, data: bytes) -> list[Event]:
        r"""The events whose lines end in ``data``. Raises UsageError for a line that is none.

        >>> [fields["receipt"] for _, fields in Events().feed(b"effect mail key=a\neffect mail key=a\n")]
        ['mail-1', 'mail-1']
        """
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > LIMIT_BYTES:
            text = f"a line of the events file is longer than {LIMIT_BYTES} bytes: {self._rest[:80]!r}…"
            raise UsageError(text)
        return [self._done(parse_line(line)) for line in lines if line.strip()]

    def close(self) -> None:
        """No more is written. Raises UsageError where the last line has no end."""
        if self._rest.strip():
            shown = self._rest[:200].decode(errors="backslashreplace")
            text = f"the events file ends in a line without an end: {shown!r}. Write each line whole, with its newline"
            raise UsageError(text)

    def _done(self, event: Event) -> Event:
        op_type, fields = event
        if op_type is not t.Effect or "receipt" in fields:
            return event
        name, key = fields["name"], fields["key"]
        known = None if key is None else self._known.get((name, key))
        if known is not None:
            if known[1]["detail"] != fields["detail"]:
                text = (
                    f"effect {name!r} with key {key!r} was done with {known[1]['detail']}, now with {fields['detail']}"
                )
                raise UsageError(text)
            return t.Effect, {**fields, "receipt": known[1]["receipt"], "counted": False}
        self._counted += 1
        done = t.Effect, {**fields, "receipt": f"{name}-{self._counted}", "counted": True}
        if key is not None:
            self._known[name, key] = done
        return done


class EventLines:
    """A sink for a traced Python process: each event is one line of the events file."""

    def __init__(self, path: str) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)

    def __call__(self, event_type: type[t.Op], **fields: Any) -> None:
        """Write it down in one write."""
        os.write(self._descriptor, write_line(event_type, fields))
