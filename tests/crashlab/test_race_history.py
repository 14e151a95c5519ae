"""Which values may be there after two owners: by the order of their calls and acks, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from crashlab.live.race import FIRST, OPENED, OPENING, SECOND
from crashlab.race_history import History


def record(*lines: tuple[str, str, Any] | tuple[str, str]) -> list[dict[str, Any]]:
    """Lines such as ``("first", "call", 1)``, ``("second", "ack")``, ``("first", "opened")``."""
    told: list[dict[str, Any]] = []
    for who, what, *value in lines:
        if what in (OPENING, OPENED):
            told.append({"who": who, "mark": what})
        else:
            told.append({"who": who, "op": {"op": what, "n": 1, **({"value": value[0]} if value else {})}})
    return told


CALL_1, ACK_1 = (FIRST, "call", 1), (FIRST, "ack", 1)
CALL_2, ACK_2 = (SECOND, "call", 2), (SECOND, "ack", 2)


@pytest.mark.parametrize(
    ("lines", "allowed"),
    [
        ([CALL_1, ACK_1, CALL_2, ACK_2], {"2"}),  # one after the other: the last acked one
        ([CALL_2, ACK_2, CALL_1, ACK_1], {"1"}),
        ([CALL_1, CALL_2, ACK_2, ACK_1], {"1", "2"}),  # side by side: either
        ([CALL_1, CALL_2, ACK_1, ACK_2], {"1", "2"}),
        ([CALL_1, ACK_1, CALL_2], {"1", "2"}),  # never acked: it may count or not
        ([CALL_1, CALL_2, ACK_2], {"1", "2"}),
        ([CALL_2, ACK_2, CALL_1, ACK_1, (SECOND, "call", 3), (SECOND, "ack", 3)], {"3"}),
    ],
)
def test_a_value_may_be_there_unless_a_later_one_was_promised(lines: list[Any], allowed: set[str]) -> None:
    """Later means begun after the ack of the other."""
    assert History(record(*lines)).allowed() == allowed


def test_a_load_in_the_middle_is_held_against_what_was_then() -> None:
    """What began after the load cannot be there, and what was acked before it must not be lost."""
    history = History(record(CALL_1, ACK_1, CALL_2, ACK_2, (FIRST, "call", 3), (FIRST, "ack", 3)))
    assert history.allowed(2, 2) == {"1"}
    assert history.allowed(2, 3) == {"1", "2"}
    assert history.allowed(4, 4) == {"2"}
    assert not history.any_acked(before=1)
    assert history.any_acked(before=2)


@pytest.mark.parametrize(
    ("lines", "stale"),
    [
        ([(FIRST, OPENED), (SECOND, OPENING), CALL_2, ACK_2, CALL_1, ACK_1], True),
        ([(FIRST, OPENED), (SECOND, OPENING), CALL_2, ACK_2, CALL_1], False),  # refused
        ([(FIRST, OPENED), CALL_1, (SECOND, OPENING), CALL_2, ACK_2, ACK_1], False),  # under way: the stated limit
        ([(SECOND, OPENING), CALL_2, ACK_2, (FIRST, OPENED), CALL_1, ACK_1], False),  # the first is the newer one
        ([(FIRST, OPENED), (SECOND, OPENING), CALL_2, CALL_1, ACK_1], False),  # nobody has taken over yet
    ],
)
def test_a_stale_call_is_one_of_the_older_owner_after_the_takeover(lines: list[Any], stale: bool) -> None:
    """Begun after the newer owner's first ack, and acked all the same."""
    assert (History(record(*lines)).stale(opens=True) is not None) == stale


def test_without_open_an_owner_is_one_that_has_begun_a_call() -> None:
    """A bare save of a process that had not saved before is no older owner's."""
    entered = [(SECOND, OPENING), CALL_2, ACK_2, CALL_1, ACK_1]
    assert History(record((FIRST, OPENED), *entered)).stale(opens=False) is None
    assert History(record((FIRST, OPENED), CALL_1, ACK_1, *entered)).stale(opens=False) is not None


A, B = (FIRST, "call", ["a", "b"]), (SECOND, "call", ["c"])
ACK_A, ACK_B = (FIRST, "ack", ["a", "b"]), (SECOND, "ack", ["c"])


@pytest.mark.parametrize(
    ("lines", "found", "kind"),
    [
        ([A, ACK_A, B, ACK_B], ["a", "b", "c"], None),
        ([A, ACK_A, B, ACK_B], ["c", "a", "b"], "hole"),  # acked before the second one appended
        ([A, B, ACK_B, ACK_A], ["a", "c", "b"], None),  # side by side
        ([A, B, ACK_B, ACK_A], ["b", "c", "a"], "hole"),
        ([A, B, ACK_B, ACK_A], ["a", "b"], "lost"),
        ([A, B, ACK_B, ACK_A], ["a", "b", "c", "c"], "duplicate-entry"),
        ([A, B, ACK_B, ACK_A], ["a", "b", "c", "x"], "torn"),
        ([A, B, ACK_B], ["c"], None),
        ([A, B, ACK_B], ["a", "c"], "torn"),  # half of an atomic batch
    ],
)
def test_a_log_keeps_what_both_appended(lines: list[Any], found: list[str], kind: str | None) -> None:
    """Every acked event once, each owner's in its order, nothing that nobody appended."""
    told = History(record(*lines)).log_problem(found, keyed=False, atomic=True)
    assert (None if told is None else told[0]) == kind


def test_an_event_with_a_key_that_both_append_is_there_once() -> None:
    """With keys twice is too often; without them it is right, and once is a loss."""
    calls, acks = ([(who, what, ["a"]) for who in (FIRST, SECOND)] for what in ("call", "ack"))
    both = History(record(*calls, *acks))
    keyed, keyless = (
        [both.log_problem(found, keyed=keyed, atomic=False) for found in (["a"], ["a", "a"])] for keyed in (True, False)
    )
    assert keyed[0] is None
    assert keyed[1] is not None
    assert keyed[1][0] == "duplicate-entry"
    assert keyless[0] is not None
    assert keyless[0][0] == "lost"
    assert keyless[1] is None
