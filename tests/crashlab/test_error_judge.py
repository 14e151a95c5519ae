"""What is forgiven to a log whose append failed and was made again: what was left of events that have no key."""

from __future__ import annotations

from typing import Any

import pytest

from crashlab import trace as t
from crashlab.demands import Reference
from crashlab.error_judge import forgiven
from crashlab.error_points import ErrorPoint, ErrorState
from crashlab.observation import Answer, RawRecording, Step
from crashlab.tree import Tree

BATCH = ["c", "d", "e"]
OPS = (
    t.Call(n=1, name="append", value=["a", "b"]),
    t.Ack(n=2, value=["a", "b"]),
    t.Call(n=3, name="append", value=BATCH),
    t.Refused(n=4, call="fsync", error="EIO", path="dir/log"),
    t.Ack(n=5, value=BATCH),
)
TRACE = t.Trace(root="/r", base=Tree.empty(), ops=OPS)


def events_after(found: list[str], *, keys: list[str] | None = None, later: list[str] | None = None) -> Any:
    """What is left of an answer that is judged; with ``later`` of its next step, which loads that."""
    point = ErrorPoint(n=4, variant="failed-fsync", kind="sync", mode="once")
    state = ErrorState(id=point.id, fault="error", trace=TRACE, tree=TRACE.base, done=5, point=point)
    live = RawRecording(
        root="/r", base=TRACE.base, ops=OPS, last=TRACE.base, how="returned", value={"raised_at": 4}
    )  # fmt: skip
    value = {"value": found, **({} if keys is None else {"keys": keys})}
    steps = [Step(step="first", how="returned", value=value)]
    steps += [] if later is None else [Step(step="third", how="returned", value={"value": later})]
    answer = Answer(state=state.id, steps=tuple(steps))
    answer = forgiven(Reference(kind="Log", trace=TRACE), state, answer, live)
    return (answer.steps[-1].value or {})["value"]


@pytest.mark.parametrize("left", [["c"], ["c", "d"], BATCH, ["e"], ["d", "e"], ["c", "e"]])
def test_any_part_of_the_failed_batch_may_stand_before_it(left: list[str]) -> None:
    """A power loss keeps the pages that it will, so a later part may be all that is left."""
    assert events_after(["a", "b", *left, *BATCH]) == ["a", "b", *BATCH]


@pytest.mark.parametrize("left", [["c"], BATCH, ["e"], ["d", "e"], ["c", "e"]])
def test_any_part_of_it_may_stand_behind_it(left: list[str]) -> None:
    """The first try came through after all, and not every page of the second."""
    assert events_after(["a", "b", *BATCH, *left]) == ["a", "b", *BATCH]


def test_what_is_saved_later_is_not_taken_for_a_part_of_it() -> None:
    """What stands behind the batch is looked for before one more is saved, which may have the same value."""
    assert events_after(["a", "b", *BATCH, "e"], later=["a", "b", *BATCH, "e", "e"]) == ["a", "b", *BATCH, "e"]
    assert events_after(["a", "b", *BATCH], later=["a", "b", *BATCH, "e"]) == ["a", "b", *BATCH, "e"]


@pytest.mark.parametrize(
    "found",
    [
        ["a", "b", "d", "c", *BATCH],  # in another order than any append wrote them
        ["a", "b", "b", *BATCH],  # of another batch
        ["a", "b", "e"],  # and the batch itself is gone
        ["a", "b", *BATCH, *BATCH, *BATCH],  # more often than it was tried: one copy too many stays
        ["a", "b", *BATCH, "e", "d"],
        ["a", *BATCH],
    ],
)
def test_nothing_else_is_forgiven(found: list[str]) -> None:
    """The judge sees what is wrong."""
    assert events_after(found) != ["a", "b", *BATCH]


def test_an_event_with_a_key_is_stored_once() -> None:
    """Its key is there to tell that it came before."""
    found = ["a", "b", "e", *BATCH]
    assert events_after(found, keys=found) == found
