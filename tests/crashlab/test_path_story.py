"""Values as one would type them."""

from __future__ import annotations

import ast
import dataclasses
import json
import uuid
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given

from crashlab import Store, Violation, check
from crashlab.path_story import rebuilt, typed, written
from crashlab.strategies import json_values
from crashlab.subject import Crash
from crashlab.values import encode

if TYPE_CHECKING:
    from pathlib import Path


def test_a_long_text_of_one_letter_is_told_short() -> None:
    """It is what the sizes of a history are made of."""
    assert typed({"a": ["x" * 4096, None, True, 2**70]}) == '{"a": ["x" * 4096, None, True, 1180591620717411303424]}'


def test_what_is_too_long_to_type_says_so() -> None:
    """It ends in an ellipsis; the values among which it stands are told by Hypothesis in full."""
    text = typed({"a": "abc" * 400})
    assert len(text) == 300
    assert text.endswith("…")


def evaluated(text: str) -> Any:
    """What the text means, with products of texts."""
    return eval(compile(ast.parse(text, mode="eval"), "typed", "eval"), {"__builtins__": {}})  # noqa: S307 - our own


@given(json_values())
def test_what_is_typed_is_the_value(value: Any) -> None:
    """Every value that is not cut means itself."""
    text = typed(encode(value))
    assert text.endswith("…") or evaluated(text) == value


PLAIN: list[Any] = [b"x", b"\xff" * 50, (1, (2,)), {1, 2}, set(), {"a": {(1, 2): b""}}, 1e308, {"$tuple": [1]}, ()]


@pytest.mark.parametrize("value", PLAIN, ids=repr)
def test_what_json_has_not_is_typed_as_python(value: Any) -> None:
    """As it was given, and from its form."""
    assert eval(written(value)) == value  # noqa: S307 - our own
    assert eval(typed(encode(value))) == value  # noqa: S307 - our own


def test_what_only_the_subject_could_build_is_named() -> None:
    """A form has no class; what it says can be read all the same."""
    assert repr(rebuilt({"$Point": {"x": 1, "at": {"$tuple": [2]}}})) == "Point(x=1, at=(2,))"
    assert typed(encode(uuid.UUID(int=3))) == 'UUID("00000000-0000-0000-0000-000000000003")'
    assert typed(encode(float("inf"))) == 'float("inf")'


def save_in_place(directory: Path, value: Any) -> None:
    """Wrong: the file is empty first."""
    (directory / "value").write_text(json.dumps({"data": value["data"].hex(), "pair": list(value["pair"])}))


def load(directory: Path) -> Any:
    """The value."""
    if not (directory / "value").exists():
        return None
    form = json.loads((directory / "value").read_text())
    return {"id": 0, "data": bytes.fromhex(form["data"]), "pair": tuple(form["pair"])}


def test_the_last_line_repeats_the_failure_whatever_the_values_are(tmp_path: Path) -> None:
    """Bytes, tuples, long texts, and what ``view`` leaves out: the line is typed, and ends in the same state."""
    value = {"id": 7, "data": bytes(range(256)), "pair": (1, 2)}
    subject = Store(save_in_place, load, view=lambda value: value and {"data": value["data"], "pair": value["pair"]})
    out: dict[str, Any] = {"out": tmp_path}
    with pytest.raises(Violation) as first:
        check(dataclasses.replace(subject, values=[value, Crash("kill@2")]), **out)
    (again,) = [line for line in str(first.value).splitlines() if line.strip().startswith("again: ")]
    values = eval(again.strip().removeprefix("again: values="), {"Crash": Crash})  # noqa: S307 - our own
    assert values[0] == value
    with pytest.raises(Violation) as second:
        check(dataclasses.replace(subject, values=values), **out)
    told, retold = (caught.value.report.findings[0] for caught in (first, second))  # type: ignore[union-attr]  # it has
    assert (told.id, told.kind, told.program) == (retold.id, retold.kind, retold.program)
