"""Tagged JSON: what crosses from a subject's process to the judge."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import json
import math
import pathlib
import uuid
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crashlab.errors import UsageError
from crashlab.values import canonical, encode, shown


class Colour(enum.Enum):
    """An enum."""

    RED = 1


@dataclasses.dataclass
class Point:
    """A dataclass."""

    x: int
    y: tuple[int, ...]


class Model:
    """Quacks like a pydantic model."""

    def model_dump(self) -> dict[str, Any]:
        """The fields."""
        return {"a": 1}


@pytest.mark.parametrize(
    ("value", "form"),
    [
        (b"\xff", {"$bytes": "/w=="}),
        ((1, 2), {"$tuple": [1, 2]}),
        ({2, 1}, {"$set": [1, 2]}),
        (datetime.date(2026, 1, 2), {"$date": "2026-01-02"}),
        (datetime.timedelta(seconds=1), {"$timedelta": "0:00:01"}),
        (uuid.UUID(int=1), {"$UUID": "00000000-0000-0000-0000-000000000001"}),
        (pathlib.PurePosixPath("a/b"), {"$PurePosixPath": "a/b"}),
        (Colour.RED, {"$enum": "Colour.RED"}),
        (Point(1, (2,)), {"$Point": {"x": 1, "y": {"$tuple": [2]}}}),
        (Model(), {"$Model": {"a": 1}}),
        (math.inf, {"$float": "inf"}),
        ({1: "a"}, {"$dict": [[1, "a"]]}),
        ({"$bytes": "x"}, {"$dict": [["$bytes", "x"]]}),
    ],
)
def test_what_json_has_not_is_tagged(value: Any, form: Any) -> None:
    """Each type has a form of its own that plain JSON cannot be mistaken for."""
    assert encode(value) == form
    json.loads(canonical(form))


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text().filter(lambda key: not key.startswith("$")), inner),
    )
)
def test_plain_json_is_itself(value: Any) -> None:
    """JSON values need no tag and survive the journey."""
    assert encode(value) == value
    assert json.loads(canonical(value)) == value


def test_tuple_and_list_true_and_one_are_told_apart() -> None:
    """Equality of forms is stricter than Python's."""
    assert canonical(encode((1,))) != canonical(encode([1]))
    assert canonical(encode(value=True)) != canonical(encode(1))
    assert canonical(encode(1.0)) != canonical(encode(1))


def test_a_value_without_a_form_says_what_to_do() -> None:
    """The message names the type and the way out."""
    with pytest.raises(
        UsageError, match=r"the end is an object, which has no JSON form\. Pass view=lambda end: vars\(end\)"
    ):
        encode(object())


def test_endless_nesting_is_refused() -> None:
    """A list that holds itself is refused instead of overflowing the stack."""
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(UsageError, match="nested deeper"):
        encode(endless)


def test_shown_is_cut() -> None:
    """Long values end in an ellipsis."""
    assert shown("x" * 100, limit=10) == '"xxxxxxxx…'
