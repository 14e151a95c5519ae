"""A drill: small pure functions, all the states that they are tried on, and the mistakes that a test must find.

What is handed in has the functions of the drill, and ``my_tests``. The functions are called on each state in a process
of their own, and what they give back is compared here. ``my_tests`` gives examples, of which each is a call and what
it should give: on the correct functions all of them must hold, and on each naive variant one of them must not. So a
learner's test is data, and nothing that is handed in judges itself.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from crashlab.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

TESTS = "my_tests"
"""The function that gives the examples, and the case that they are judged by is ``tests``."""
KEYS = ("function", "given", "expect")
EXAMPLES_AT_MOST = 60
BYTES_AT_MOST = 2**17
_SHOWN = 300
_BEFORE = 60


@dataclass(frozen=True, slots=True)
class State:
    """One call: where in the course of things, of which function, and with what. ``given`` is a list, as JSON."""

    place: str
    function: str
    given: str


@dataclass(frozen=True, kw_only=True)
class Drill:
    """``functions`` are the correct ones; ``states`` gives those of each case for a seed.

    ``naive`` has for each variant what it has in the place of a correct function, or of several.
    """

    functions: Mapping[str, Callable[..., Any]]
    states: Callable[[int], Mapping[str, Iterator[State]]]
    naive: Mapping[str, Mapping[str, Callable[..., Any]]] = field(default_factory=dict)

    def gives(self, function: str, given: str, variant: str = "") -> str:
        """What the correct function gives, or that of a naive variant, as text that can be compared."""
        chosen = {**self.functions, **self.naive.get(variant, {})}[function]
        return text_of(chosen(*json.loads(given)))


def called(place: str, function: str, *given: Any) -> State:
    """A state with these arguments."""
    return State(place, function, text_of(list(given)))


def text_of(value: Any) -> str:
    """A value as JSON, equal for equal values alone: True is not 1. Raises ValueError or TypeError for what is none."""
    return json.dumps(value, sort_keys=True, allow_nan=False)


def short(text: str) -> str:
    """A text as a message can show it."""
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def apart(one: str, other: str) -> tuple[str, str]:
    """Two long texts as a message can show them: from a little before the place where they part.

    >>> apart("x" * 500 + "1", "x" * 500 + "2")[0] == "..." + "x" * 60 + "1"
    True
    """
    if max(len(one), len(other)) <= _SHOWN:
        return one, other
    equal = next((at for at, pair in enumerate(zip(one, other, strict=False)) if len({*pair}) > 1), 0)
    start = max(0, equal - _BEFORE)
    dots = "..." if start else ""
    return dots + short(one[start:]), dots + short(other[start:])


@dataclass(frozen=True, slots=True)
class Example:
    """One example of a learner's own test."""

    place: str
    function: str
    given: str
    expect: str


def examples(drill: Drill, answer: Mapping[str, Any]) -> list[Example]:
    """What ``my_tests`` gave. Raises UsageError that names the example, and what is wrong about it."""
    if "error" in answer:
        text = f"{TESTS}() raised {answer['error']}"
        raise UsageError(text)
    value = json.loads(answer["value"])
    if not isinstance(value, list) or not 0 < len(value) <= EXAMPLES_AT_MOST:
        text = f"{TESTS}() must give a list of 1 to {EXAMPLES_AT_MOST} examples, not {short(answer['value'])}"
        raise UsageError(text)
    return [_example(drill, f"{TESTS}()[{number}]", each) for number, each in enumerate(value)]


def _example(drill: Drill, place: str, form: Any) -> Example:
    if not isinstance(form, dict) or sorted(form) != sorted(KEYS):
        text = f"{place} must be a dictionary with {', '.join(KEYS)}, not {short(text_of(form))}"
        raise UsageError(text)
    if form["function"] not in drill.functions:
        text = f"{place}: function is {form['function']!r:.80}; expected {' or '.join(map(repr, drill.functions))}"
        raise UsageError(text)
    if not isinstance(form["given"], list):
        text = f"{place}: given must be the list of all arguments, not {short(text_of(form['given']))}"
        raise UsageError(text)
    return Example(place, form["function"], text_of(form["given"]), text_of(form["expect"]))


def wrong_example(drill: Drill, every: list[Example]) -> tuple[Example, str] | None:
    """The first example that the correct functions do not hold, and what they give; None where there is none."""
    for each in every:
        try:
            found = drill.gives(each.function, each.given)
        except Exception as error:
            text = f"{each.place}: that is nothing that {each.function} can be given ({type(error).__name__}: {error})"
            raise UsageError(text) from error
        if found != each.expect:
            return each, found
    return None


def passes(drill: Drill, variant: str, every: list[Example]) -> bool:
    """Whether a naive variant gives what is expected in all examples. An error is not what is expected."""
    for each in every:
        try:
            if drill.gives(each.function, each.given, variant) != each.expect:
                return False
        except Exception:  # noqa: BLE001 - whatever a mistake comes to, the example has shown it
            return False
    return True
