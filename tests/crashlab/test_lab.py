"""The object that subjects receive: effects, keys, look-ups."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from crashlab import trace as t
from crashlab.errors import UsageError
from crashlab.lab import Lab


def lab_with_log(**fields: Any) -> tuple[Lab, list[tuple[str, dict[str, Any]]]]:
    """A lab and the events that it told."""
    events: list[tuple[str, dict[str, Any]]] = []
    return Lab(Path("/nowhere"), lambda event_type, **more: events.append((event_type.KIND, more)), **fields), events


def test_an_effect_without_key_is_done_each_time() -> None:
    """Two mails are two mails, each with a receipt of its own."""
    lab, events = lab_with_log()
    assert [lab.effect("mail", to="ada"), lab.effect("mail", to="ada")] == ["mail-1", "mail-2"]
    assert [fields["counted"] for _, fields in events] == [True, True]


def test_a_known_key_gives_the_first_receipt_and_is_not_counted() -> None:
    """The outside world keeps the promise of idempotency keys."""
    lab, events = lab_with_log()
    assert lab.effect("pay", key="k", yen=1) == lab.effect("pay", key="k", yen=1) == "pay-1"
    assert [fields["counted"] for _, fields in events] == [True, False]
    assert lab.lookup("pay", key="k") == "pay-1"
    assert lab.lookup("pay", key="other") is None
    assert lab.lookup("mail", key="k") is None


def test_the_same_key_with_other_details_raises() -> None:
    """A key names one act; using it for another is a mistake that a real service reports."""
    lab, events = lab_with_log()
    lab.effect("pay", key="k", yen=1)
    with pytest.raises(ValueError, match="now asked with"):
        lab.effect("pay", key="k", yen=2)
    assert len(events) == 1


def test_effects_before_the_crash_are_known_after_it() -> None:
    """The outside world remembers: history comes from the trace."""
    history = Lab.history([t.Effect(n=1, name="pay", key="k", detail={"yen": 1}, receipt="pay-1")])
    lab, events = lab_with_log(_effects=history)
    assert lab.effect("pay", key="k", yen=1) == "pay-1"
    assert lab.effect("pay", yen=1) == "pay-2"
    assert [fields["counted"] for _, fields in events] == [False, True]


def test_acks_unknowns_and_save_points_are_told_in_order() -> None:
    """Each call is one event."""
    lab, events = lab_with_log()
    lab.save_point("A")
    lab.ack((1,))
    lab.unknown("mail", to="ada")
    assert [kind for kind, _ in events] == ["save-point", "ack", "unknown"]
    assert events[1][1] == {"value": {"$tuple": [1]}}


@pytest.mark.parametrize("name", ["effects", "acked", "expected"])
def test_what_is_for_check_only_is_closed_elsewhere(name: str) -> None:
    """A recovery that could read the answers would not need its files."""
    lab, _ = lab_with_log()
    with pytest.raises(UsageError, match=f"lab.{name} is for check only"):
        getattr(lab, name)
    with lab.checking(expected=7):
        getattr(lab, name)
    with pytest.raises(UsageError):
        getattr(lab, name)


def test_the_outside_world_can_be_played() -> None:
    """A mailbox that can be searched answers from the record."""
    lab, _ = lab_with_log()
    lab.effect("mail", to="ada")
    lab.effect("page")
    assert [each.detail for each in lab.records("mail")] == [{"to": "ada"}]
    assert len(lab.records()) == 2
