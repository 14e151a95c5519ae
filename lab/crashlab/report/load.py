"""Reports from JSON back to dataclasses, and the wrapper that ``--json`` prints.

A stored report may come from a newer version, so unknown fields are passed over; and from anywhere
else, so every value is checked against the type of its field before anything is drawn from it.
"""

from __future__ import annotations

import dataclasses
import json
import types
import typing
from functools import cache
from typing import TYPE_CHECKING, Any

from crashlab.errors import UsageError
from crashlab.report import model
from crashlab.report.model import REPORTS_SCHEMA, SCHEMA, Report

if TYPE_CHECKING:
    from collections.abc import Sequence


def dump(reports: Sequence[Report]) -> str:
    """The text that ``--json`` prints: pure ASCII, so that any file name survives any stream.

    >>> dump([])
    '{"schema": "crashlab.reports/1", "reports": []}'
    """
    return json.dumps({"schema": REPORTS_SCHEMA, "reports": [report.to_json() for report in reports]})


def load(form: object) -> Report:
    """The Report of which ``form`` is the JSON object. Raises UsageError for anything else."""
    if not isinstance(form, dict) or form.get("schema") != SCHEMA:
        found = form.get("schema") if isinstance(form, dict) else type(form).__name__
        text = f"not a report that this crashlab can read: expected schema {SCHEMA!r}, found {found!r}; check again"
        raise UsageError(text)
    report = _value(form, Report, "report")
    assert isinstance(report, Report)
    return report


def _value(form: Any, expected: Any, where: str) -> Any:
    """``form`` as a value of the type ``expected``, which is one that the result model uses."""
    origin = typing.get_origin(expected)
    if expected is Any:
        return form
    if dataclasses.is_dataclass(expected) and isinstance(expected, type):
        return _dataclass(form, expected, where)
    if origin is tuple and isinstance(form, list):
        item = typing.get_args(expected)[0]
        return tuple(_value(each, item, f"{where}[{position}]") for position, each in enumerate(form))
    if origin is dict and isinstance(form, dict):
        item = typing.get_args(expected)[1]
        return {key: _value(each, item, f"{where}.{key}") for key, each in form.items()}
    if origin is typing.Literal and form in typing.get_args(expected):
        return form
    if origin is types.UnionType and any(_is(form, each) for each in typing.get_args(expected)):
        return form
    if origin is None and _is(form, expected):
        return form
    text = f"damaged report: {where} is {type(form).__name__} {_short(form)}, which it cannot be; check again"
    raise UsageError(text)


def _dataclass(form: Any, expected: Any, where: str) -> Any:
    if not isinstance(form, dict):
        text = f"damaged report: {where} is {type(form).__name__} {_short(form)}, not an object; check again"
        raise UsageError(text)
    values = {}
    for name, wanted in _types_of(expected).items():
        if name in form:
            each = form[name]
            values[name] = each if type(each) is wanted else _value(each, wanted, f"{where}.{name}")
    try:
        return expected(**values)
    except TypeError as error:
        text = f"damaged report: {where}: {error}; check again"
        raise UsageError(text) from error


@cache
def _types_of(expected: Any) -> dict[str, Any]:
    """The fields of a dataclass and their types; a report of many findings asks ten thousand times."""
    hints = typing.get_type_hints(expected, vars(model))
    return {each.name: hints[each.name] for each in dataclasses.fields(expected)}


def _is(form: Any, expected: Any) -> bool:
    """Whether ``form`` is a plain ``expected``; a bool is no number here, an int may stand for a float."""
    if isinstance(form, bool):
        return expected is bool
    return isinstance(form, (int, float) if expected is float else expected)


def _short(form: Any) -> str:
    text = repr(form)
    return text if len(text) <= 40 else f"{text[:39]}…"  # noqa: PLR2004 - enough to recognise it by
