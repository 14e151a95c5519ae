"""What is demanded after several crashes: laws of the history that calls, acks and loads make."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crashlab import trace as t
from crashlab.demands import history
from tests.crashlab.traces import ack, call, trace_of

VALUES = st.integers(0, 3)
EVENTS = st.lists(VALUES, min_size=1, max_size=3)


def told(*ops: Any, log: bool = False) -> tuple[list[Any], int]:
    """The history of these ops."""
    return history(trace_of(*ops).ops, log=log)


def loaded(value: Any) -> Any:
    """A run that goes on begins like this."""
    return call(value, name=t.LOAD)


@pytest.mark.parametrize("log", [False, True])
@given(acked=st.lists(EVENTS, max_size=4), flying=st.booleans())
def test_without_a_load_it_is_the_calls_and_the_acks(log: bool, acked: list[list[int]], flying: bool) -> None:
    """One run: every call in order, and as many acks as came behind a call."""
    ops = [op for value in acked for op in (call(value), ack(value))] + ([call([9])] if flying else [])
    assert told(*ops, log=log) == ([*acked, *([[9]] if flying else [])], len(acked))


def test_an_ack_counts_once_for_each_call() -> None:
    """The subject's own ack inside a call and the one at its return are one."""
    assert told(call(1), ack(), ack(1), call(2)) == ([1, 2], 1)


@given(before=VALUES, flying=VALUES, after=VALUES)
def test_a_store_keeps_of_what_flew_what_was_loaded(before: int, flying: int, after: int) -> None:
    """Loaded, it may be there or not until the next ack; not loaded, it is gone."""
    begun = (call(before), ack(before), call(flying))
    assert told(*begun, loaded(flying)) == ([before, flying], 1)
    values, acked = told(*begun, loaded(before))
    assert values[acked - 1 :] in ([before], [before, flying])
    assert before == flying or values == [before]
    values, acked = told(*begun, loaded(flying), call(after), ack(after))
    assert values[acked - 1 :] == [after]


def test_two_crashes_without_an_ack_leave_all_that_may_be_there() -> None:
    """The acked one, the one that was loaded after it, and the one in flight."""
    assert told(call(1), ack(1), call(2), loaded(2), call(3)) == ([1, 2, 3], 1)


def test_what_was_loaded_may_be_lost_again_and_stays_lost() -> None:
    """A kill shows it, a power loss takes it: then it is no longer among the values."""
    assert told(call(1), ack(1), call(2), loaded(2), loaded(1)) == ([1], 1)


def test_nothing_loaded_leaves_nothing() -> None:
    """Before the first ack there may be nothing."""
    assert told(call(1), loaded(None)) == ([], 0)


@given(acked=st.lists(EVENTS, max_size=3), flying=EVENTS, kept=st.integers(0, 3), after=EVENTS)
def test_a_log_keeps_of_what_flew_the_events_that_were_loaded(
    acked: list[list[int]], flying: list[int], kept: int, after: list[int]
) -> None:
    """The beginning of the batch that was there counts like a batch; the next one comes behind it."""
    before = [op for batch in acked for op in (call(batch), ack(batch))]
    flat = [event for batch in acked for event in batch]
    there = flying[:kept]
    values, count = told(*before, call(flying), loaded(flat + there), call(after), log=True)
    assert [event for batch in values for event in batch] == flat + there + after
    assert count == len(acked)
    values, count = told(*before, call(flying), loaded(flat + there), call(after), ack(after), log=True)
    assert count == len(values)
