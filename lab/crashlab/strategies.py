"""Hypothesis: histories of saves and crashes, values that break stores, and a ready state machine.

>>> from hypothesis import given
>>> from crashlab import Store, check
>>> from crashlab.strategies import histories, json_values
>>> @given(values=histories(json_values()))                                # doctest: +SKIP
... def test_histories(values):
...     check(Store(save, load, values=values))

A failure shrinks to few values, few crashes and the latest state, and its message holds the path as a program.
Failures of different kinds (``lost``, ``torn``, ...) are told apart and reported each. The settings of the user
are left alone: what the lab takes to start processes, record and recover does not count towards Hypothesis's
deadline, whatever that is, since each recovery has ``timeout_s`` for itself. Where this version of Hypothesis
has changed what the lab relies on for that, put ``@settings(deadline=None)`` on the test.

This is the only module that imports Hypothesis; a plain list of values with ``Crash`` between needs none.
"""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, Any

from crashlab import path_check
from crashlab.errors import UsageError
from crashlab.subject import Crash, Log, Store

try:
    from hypothesis import currently_in_test_context, settings
    from hypothesis import strategies as st
    from hypothesis.control import current_build_context
    from hypothesis.stateful import RuleBasedStateMachine, precondition, rule
except ModuleNotFoundError as error:
    if error.name != "hypothesis":
        raise
    _TEXT = (
        "crashlab.strategies needs Hypothesis, which is not installed: pip install hypothesis. "
        "Without it write the history yourself: values=[{}, Crash('power', 0)], with Crash from crashlab.subject."
    )
    raise ModuleNotFoundError(_TEXT, name="hypothesis") from error

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hypothesis.strategies import SearchStrategy

__all__ = ["Crash", "batches", "histories", "json_values", "state_machine"]

FAULTS = ("kill", "power")
_LARGEST_PICK = 200
STEPS = 8
_SIZES = (512, 4096, 8192)
_LETTERS = st.characters(codec="utf-8")
_CHARGED = "execute:crashlab"


# --- values ----------------------------------------------------------------------------------------


def json_values() -> SearchStrategy[Any]:
    """Values that JSON can hold, among them those at which stores break.

    Emoji and other text, large integers, floats without NaN, nesting, and texts of 512, 4,096 and 8,192 bytes
    and a little less or more: the sizes of a sector, of a block and of a buffer. They shrink to ``{}``. At the
    top is always an object, since many stores take nothing else.
    """
    return st.dictionaries(_LETTER_TEXT, _nested(), max_size=3)


def batches(values: SearchStrategy[Any] | None = None, *, max_size: int = 3) -> SearchStrategy[list[Any]]:
    """What a ``Log`` appends at once: lists of one to ``max_size`` events."""
    return st.lists(json_values() if values is None else values, min_size=1, max_size=max_size)


_LETTER_TEXT = st.text(_LETTERS, max_size=5)


def _nested() -> SearchStrategy[Any]:
    plain = st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.integers(min_value=2**53 - 1, max_value=2**70),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(_LETTERS, max_size=20),
        st.sampled_from(["😀", "👩‍👩‍👧", "e\u0301", "\u2028", "\x00", '"\\\n']),
        _sized(),
    )
    return st.recursive(
        plain,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_LETTER_TEXT, inner, max_size=3),
        max_leaves=5,
    )


def _sized() -> SearchStrategy[str]:
    """Texts round the sizes at which files and buffers break; what JSON adds round them is counted in at times."""
    sizes = st.builds(lambda size, more: size + more, st.sampled_from(_SIZES), st.integers(-24, 24))
    return st.builds(lambda letter, size: letter * size, st.sampled_from("xyz"), sizes)


# --- histories -------------------------------------------------------------------------------------


def histories(
    values: SearchStrategy[Any], *, crashes: str = "kill,power", max_size: int = 8
) -> SearchStrategy[list[Any]]:
    """Lists of values with at least one :class:`Crash` among them, for ``Store(…, values=…)`` or ``Log``.

    They begin with a value: a crash before that finds nothing. For a ``Log`` pass ``batches(…)``. ``crashes`` is a
    list of ``kill`` and ``power``, ``max_size`` the most elements, from 2 on. They shrink to one value and one
    crash. Raises UsageError for another fault or size.
    """
    faults = _faults(crashes)
    if max_size < 2:  # noqa: PLR2004 - a value and a crash
        text = f"max_size is {max_size}; a history has at least a value and a crash, so 2"
        raise UsageError(text)
    crash = _crashes(faults)
    rest = st.lists(st.one_of(values, crash), max_size=max_size - 2)
    return st.tuples(values, rest, crash, st.integers(0, max_size)).map(_history)


def _history(parts: tuple[Any, list[Any], Crash, int]) -> list[Any]:
    """First value, the rest, and the one crash that must be there: at the end, or so many elements before it."""
    first, rest, crash, back = parts
    at = max(0, len(rest) - back)
    return [first, *rest[:at], crash, *rest[at:]]


def _crashes(faults: Sequence[str]) -> SearchStrategy[Crash]:
    few, some, many = (st.integers(0, largest) for largest in (3, 30, _LARGEST_PICK))
    return st.builds(Crash, st.sampled_from(faults), st.one_of(few, some, many))


def _faults(crashes: str) -> list[str]:
    faults = [each.strip() for each in crashes.split(",")]
    for each in faults:
        if each not in FAULTS:
            text = f"crashes={crashes!r}: {each!r} is no crash of a history; known: {', '.join(FAULTS)}"
            raise UsageError(text)
    return faults


# --- a state machine -------------------------------------------------------------------------------


def state_machine(
    subject: Store | Log, *, values: SearchStrategy[Any] | None = None, crashes: str = "kill,power", **options: Any
) -> type[RuleBasedStateMachine]:
    """A state machine with the rules ``save`` (``append`` for a Log), ``crash`` and ``load``, ready to be run.

    ``values`` are what is saved, or the batches that are appended; ``options`` are those of
    :func:`crashlab.check`. ``load`` starts the program anew without a crash in the middle of a call. Its settings
    have no deadline; those of the user stay as they are. Add rules or invariants in a subclass. Raises UsageError.

    >>> TestMyStore = state_machine(Store(save, load)).TestCase            # doctest: +SKIP
    """
    if not hasattr(subject, "values"):
        text = f"a state machine needs a Store or a Log, not {type(subject).__name__}"
        raise UsageError(text)
    log = isinstance(subject, Log)
    chosen = values if values is not None else batches() if log else json_values()
    name = subject.name or subject.kind.lower()
    write = rule(events=chosen)(_Rules.append) if log else rule(value=chosen)(_Rules.save)
    rules = {
        "append" if log else "save": write,
        "crash": rule(crash=_crashes(_faults(crashes)))(precondition(_has_saved)(_Rules.crash)),
        "load": rule()(precondition(_has_saved)(_Rules.load)),
    }
    parts = {"__init__": lambda self: _begin(self, subject, name, options), "teardown": _end, **rules}
    doc = f"The histories of {name}, from crashlab.strategies.state_machine."
    machine: Any = type("Histories", (RuleBasedStateMachine,), {"__doc__": doc, "__module__": __name__, **parts})
    machine.TestCase.settings = settings(machine.TestCase.settings, deadline=None, stateful_step_count=STEPS)
    made: type[RuleBasedStateMachine] = machine
    return made


def _begin(self: Any, subject: Store | Log, name: str, options: Any) -> None:
    RuleBasedStateMachine.__init__(self)
    self.walk = path_check.Walk(subject, name, options)


def _end(self: Any) -> None:
    """Judge what is there at the end, if nothing was wrong before, and give the processes back."""
    try:
        self.walk.look()
    finally:
        self.walk.end()


def _has_saved(self: Any) -> bool:
    return bool(self.walk.path.values)


class _Rules:
    """The rules, under the names by which Hypothesis tells a failure."""

    walk: path_check.Walk

    def save(self, value: Any) -> None:
        self.walk.save(value)

    def append(self, events: list[Any]) -> None:
        self.walk.save(events)

    def crash(self, crash: Crash) -> None:
        self.walk.crash(crash)

    def load(self) -> None:
        self.walk.look()


# --- time --------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _uncharged() -> Iterator[bool]:
    """Within a test of Hypothesis: what passes here counts as time of the machinery, not of the test.

    Gives whether the outcome is seen: before that Hypothesis has made it as small as it can.
    """
    if not currently_in_test_context():
        yield True
        return
    context = current_build_context()
    charged = getattr(context.data, "_stateful_run_times", None)
    started = time.perf_counter()
    try:
        yield getattr(context, "is_final", True)
    finally:
        if charged is not None:
            charged[_CHARGED] = charged.get(_CHARGED, 0.0) + time.perf_counter() - started


path_check.around[:] = [_uncharged]
