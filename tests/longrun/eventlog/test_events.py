"""Tests of longrun.eventlog.events: the schemas, and that schemas.json says the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from longrun.eventlog import events
from longrun.eventlog.errors import InvalidEvent
from longrun.eventlog.events import EVENTS, SHAPES, BranchMove, Note, TurnEnd, schemas


def test_schemas_json_is_what_the_dataclasses_say() -> None:
    """A program in another language reads that file."""
    stored = Path(events.__file__).with_name("schemas.json").read_text()
    assert stored == json.dumps(schemas(), indent=1, sort_keys=True) + "\n"


def test_what_has_a_default_is_left_away_and_null_is_written() -> None:
    """An optional field that is not there is not there; one that may be null is."""
    assert BranchMove(to_seq=None).data() == {"to_seq": None}
    assert BranchMove(to_seq=3, summary="x").data() == {"to_seq": 3, "summary": "x"}


@pytest.mark.parametrize(
    ("kind", "data", "says"),
    [
        ("turn/start", {}, "missing fields"),
        ("turn/start", {"turn": 1, "more": 2}, "unknown fields"),
        ("turn/start", {"turn": True}, "turn must be int"),
        ("turn/end", {"turn": 1, "synthetic": False, "reason": "tired"}, "reason must be one of"),
        ("user/message", {"turn": 1, "content": 7}, "content must be str or list"),
        ("turn/start", [], "must be an object"),
    ],
)
def test_another_shape_is_refused(kind: str, data: Any, says: str) -> None:
    """With the field, and what it must be."""
    with pytest.raises(InvalidEvent, match=says):
        SHAPES[kind].check(kind, data)


def test_every_event_passes_its_own_schema() -> None:
    """And a note may hold anything."""
    event = TurnEnd(turn=1, synthetic=True, reason="interrupted")
    SHAPES[event.TYPE].check(event.TYPE, event.data())
    SHAPES[Note.TYPE].check(Note.TYPE, {"any": [1]})
    assert all(name == EVENTS[name].TYPE for name in EVENTS)
