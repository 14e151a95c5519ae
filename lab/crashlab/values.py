"""Values between processes: JSON with tags for what JSON has not.

Nothing pickled ever comes back from a subject's process: a submission cannot run code in its judge.
Bytes, tuples, sets, complex floats (NaN, infinities), dates, UUIDs, paths, enums, dataclasses and
pydantic models become tagged objects. The judge compares tagged forms and never rebuilds classes.

>>> encode({"when": (1, b"x")})
{'when': {'$tuple': [1, {'$bytes': 'eA=='}]}}
"""

from __future__ import annotations

import base64
import dataclasses
import enum
import json
import math
import pathlib
from typing import TYPE_CHECKING, Any

from crashlab.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

DEPTH_LIMIT = 200

_BY_TEXT: dict[tuple[str, str], Callable[[Any], str]] = {
    ("datetime", "datetime"): lambda value: value.isoformat(),
    ("datetime", "date"): lambda value: value.isoformat(),
    ("datetime", "time"): lambda value: value.isoformat(),
    ("datetime", "timedelta"): str,
    ("decimal", "Decimal"): str,
    ("uuid", "UUID"): str,
}
"""By module and name: every process of a subject would carry the modules otherwise, used or not."""

_SHOWN_CHARACTERS = 60
_PARTED_CHARACTERS = 20


def encode(value: Any, *, depth: int = 0) -> Any:
    """The tagged JSON form of ``value``.

    Raises UsageError where there is none; the message says what to pass as ``view``.
    """
    if depth > DEPTH_LIMIT:
        text = f"the value is nested deeper than {DEPTH_LIMIT} levels; pass view=… to compare a part of it"
        raise UsageError(text)
    if isinstance(value, enum.Enum):
        return {"$enum": f"{type(value).__qualname__}.{value.name}"}
    if value is None or isinstance(value, (bool, str, int)):
        return value if value is None or type(value) in (bool, str, int) else {"$" + type(value).__name__: repr(value)}
    if isinstance(value, float):
        return value if math.isfinite(value) else {"$float": repr(value)}
    if isinstance(value, dict):
        return _encode_mapping(value, depth)
    if isinstance(value, list):
        return [encode(item, depth=depth + 1) for item in value]
    return _encode_tagged(value, depth)


def _encode_mapping(value: dict[Any, Any], depth: int) -> Any:
    if all(isinstance(key, str) and not key.startswith("$") for key in value):
        return {key: encode(item, depth=depth + 1) for key, item in value.items()}
    pairs = [[encode(key, depth=depth + 1), encode(item, depth=depth + 1)] for key, item in value.items()]
    return {"$dict": sorted(pairs, key=canonical)}


def _encode_tagged(value: Any, depth: int) -> Any:
    match value:
        case bytes() | bytearray() | memoryview():
            return {"$bytes": base64.b64encode(value).decode()}
        case tuple():
            return {"$tuple": [encode(item, depth=depth + 1) for item in value]}
        case set() | frozenset():
            return {"$set": sorted((encode(item, depth=depth + 1) for item in value), key=canonical)}
        case pathlib.PurePath():
            return {"$" + type(value).__name__: str(value)}
    for base in type(value).__mro__:
        if way := _BY_TEXT.get((base.__module__, base.__qualname__)):
            return {"$" + type(value).__name__: way(value)}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {each.name: getattr(value, each.name) for each in dataclasses.fields(value)}
        return {"$" + type(value).__qualname__: encode(fields, depth=depth + 1)}
    if callable(dump := getattr(value, "model_dump", None)):
        return {"$" + type(value).__qualname__: encode(dump(), depth=depth + 1)}
    name = type(value).__qualname__
    article = "an" if name[0].lower() in "aeiou" else "a"
    text = f"the end is {article} {name}, which has no JSON form. Pass view=lambda end: vars(end)."
    raise UsageError(text)


def canonical(form: Any) -> str:
    """One string per tagged form: equal exactly where the forms are equal, with 1 and True kept apart."""
    return json.dumps(form, sort_keys=True, ensure_ascii=True, separators=(",", ":"))


def _spoken(form: Any) -> str:
    """A tagged form, with tuples, sets and bytes as Python writes them."""
    match form:
        case {"$tuple": list(items), **rest} if not rest:
            return f"({', '.join(map(_spoken, items))}{',' if len(items) == 1 else ''})"
        case {"$set": list(items), **rest} if not rest:
            return f"{{{', '.join(map(_spoken, items))}}}" if items else "set()"
        case {"$bytes": str(text), **rest} if not rest:
            return repr(base64.b64decode(text))
        case dict():
            return f"{{{', '.join(f'{json.dumps(key)}: {_spoken(item)}' for key, item in form.items())}}}"
        case list():
            return f"[{', '.join(map(_spoken, form))}]"
    return json.dumps(form)


def apart(form: Any, other: Any) -> str:
    """``other`` for people, beside ``form``: where both begin alike and are cut, what it has where they part.

    >>> print(apart("x" * 80 + "a", "x" * 80 + "b").partition("…")[2])
     (from character 82 on 'b"' where the other has 'a"')
    """
    told = shown(other)
    if form == other or told != shown(form):
        return told
    first, second = json.dumps(form), json.dumps(other)
    at = next((n for n, (one, two) in enumerate(zip(first, second, strict=False)) if one != two), None)
    if at is None:
        at = min(len(first), len(second))
    here, there = (repr(text[at : at + _PARTED_CHARACTERS]) if text[at:] else "its end" for text in (second, first))
    return f"{told} (from character {at + 1:,} on {here} where the other has {there})"


def shown(form: Any, *, limit: int = _SHOWN_CHARACTERS) -> str:
    r"""A tagged form for people, cut to ``limit`` characters.

    What JSON has not is shown as Python writes it.

    >>> shown({"n": 1}), shown({"xy": {"$tuple": [1, {"$bytes": "eA=="}]}})
    ('{"n": 1}', '{"xy": (1, b\'x\')}')
    """
    text = json.dumps(form, ensure_ascii=True)
    if '{"$' in text:
        text = _spoken(form)
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
