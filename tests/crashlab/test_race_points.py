"""Ids of races: taken apart, and refused with what to write where there is no such race."""

from __future__ import annotations

import pytest

from crashlab import UsageError
from crashlab import trace as t
from crashlab.race_points import Race, RacePoint, parse, stretches
from crashlab.tree import Tree

TRACE = t.Trace(root="/r", base=Tree.empty(), ops=tuple(t.Ack(n=n, value=n) for n in range(1, 13)))


@pytest.mark.parametrize("point", [RacePoint(12), RacePoint(0), RacePoint(3, 4)])
def test_an_id_leads_back_to_its_point(point: RacePoint) -> None:
    """Where the second owner enters, and where it is stopped, if it is."""
    assert parse(point.id, TRACE) == point


@pytest.mark.parametrize("text", ["race@", "race@x", "race@1+2", "race@1-", "race@1/kill@2"])
def test_what_is_no_id_is_answered_with_what_to_write(text: str) -> None:
    """The message shows both forms."""
    with pytest.raises(UsageError, match=r"expected race@12, or race@12-3"):
        parse(text, TRACE)


def test_an_op_that_is_not_there_is_named() -> None:
    """An id of another program is no state of this one."""
    with pytest.raises(UsageError, match="no op 13 in this recording"):
        parse("race@13", TRACE)


def raced(turns: tuple[tuple[str, int], ...], *, switch: int = 0, waited: str = "") -> Race:
    """A race of twelve ops."""
    return Race(
        point=RacePoint(2, switch),
        trace=TRACE,
        owners=("first",) * 2 + ("second",) * 4 + ("first",) * 6,
        turns=turns,
        record=(),
        reached=2,
        waited=waited,
        last=Tree.empty(),
    )


def test_the_second_owner_ended_where_the_first_went_on() -> None:
    """Unless it was stopped and went on later, or waited."""
    turns = (("first", 0), ("second", 2), ("first", 6))
    assert raced(turns).ended_second_at == 6
    assert raced((*turns, ("second", 9)), switch=4).ended_second_at is None
    assert raced((*turns, ("second", 12)), switch=4).ended_second_at == 6
    assert raced(turns, waited="second").ended_second_at is None
    assert stretches(raced(turns)) == [("first", 0, 2), ("second", 2, 6), ("first", 6, 12)]
