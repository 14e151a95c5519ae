"""Tests of longrun.inbox: the default tickets, and those of other seeds."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from longrun.inbox import BODY_BYTES, make_inbox

SEEDS = st.integers(1, 10_000)


def test_the_default_inbox_is_the_one_of_the_lessons() -> None:
    """Four tickets: checkout down, charged twice (1000 yen), a duplicate, spam."""
    assert [ticket.ticket for ticket in make_inbox()] == ["T-101", "T-102", "T-103", "T-104"]
    down, twice, duplicate, spam = make_inbox()
    assert down.subject == "Checkout is down"
    assert "give 1000 yen back" in twice.body
    assert duplicate.subject.startswith("Duplicate of T-101")
    assert spam.sender.endswith("@example.com")


def test_bodies_fill_several_pages_of_a_file() -> None:
    """Each body has the stated size, within one line of log, and is plain ASCII."""
    for ticket in make_inbox():
        assert BODY_BYTES <= len(ticket.body) < BODY_BYTES + 150
        assert ticket.body.isascii()


@given(SEEDS)
def test_a_seed_gives_three_to_seven_tickets_of_which_something_is_to_do(seed: int) -> None:
    """Numbers follow each other, at least one ticket is an outage and one a double charge."""
    inbox = make_inbox(seed)
    assert 3 <= len(inbox) <= 7
    numbers = [int(ticket.ticket.removeprefix("T-")) for ticket in inbox]
    assert numbers == list(range(numbers[0], numbers[0] + len(inbox)))
    assert any("down" in ticket.subject for ticket in inbox)
    refunds = [found[1] for ticket in inbox if (found := re.search(r"give (\d+) yen back", ticket.body))]
    assert refunds
    assert len(set(refunds)) == len(refunds)


@given(SEEDS, SEEDS)
def test_seeds_differ_and_repeat(one: int, other: int) -> None:
    """The same seed gives the same letters, another seed others."""
    make_inbox.cache_clear()
    first = make_inbox(one)
    make_inbox.cache_clear()
    assert make_inbox(one) == first
    assert (make_inbox(other) == first) == (one == other)
