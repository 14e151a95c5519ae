"""Values as one would type them."""

from __future__ import annotations

import ast
from typing import Any

from hypothesis import given

from crashlab.path_story import typed
from crashlab.strategies import json_values
from crashlab.values import encode


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
