"""Tests of longrun.eventlog.grammar: what may follow what."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from longrun.eventlog.errors import InvalidEvent
from longrun.eventlog.events import (
    ApprovalAsked,
    ApprovalDecided,
    BranchMove,
    Compaction,
    Label,
    ModelCall,
    RequestHeader,
    SessionStart,
    ToolCall,
    TurnEnd,
    TurnStart,
    UserMessage,
    WriterStart,
)
from tests.longrun.eventlog.sessions import answer, begin, call, end, opened, result, whole_turn

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from longrun.eventlog.events import Event
    from longrun.eventlog.log import EventLog

HEADER = RequestHeader(model="m", system="", tools=[], params={}, reason="change")


@pytest.fixture
def log(tmp_path: Path) -> Iterator[EventLog]:
    """A new session."""
    with opened(tmp_path) as session:
        yield session


def refused(log: EventLog, event: Event, says: str) -> None:
    before = (log.grammar.seq, log.grammar.open, dict(log.grammar.pending))
    with pytest.raises(InvalidEvent, match=says):
        log.append(event)
    assert (log.grammar.seq, log.grammar.open, log.grammar.pending) == before


@pytest.mark.parametrize(
    ("event", "says"),
    [
        (SessionStart(session_id="t", format=1, created_ms=0), "the first record is session/start"),
        (WriterStart(writer="x", reason="resume"), "the fence must be above"),
        (TurnStart(turn=2), "the turn must be 1"),
        (UserMessage(turn=1, content="hm"), "not of an open turn"),
        (TurnEnd(turn=1, synthetic=False, reason="completed"), "not of an open turn"),
        (BranchMove(to_seq=1), "cannot go on from record 1"),
        (Compaction(summary="s", from_seq=0, to_seq=1, tokens_before=0), "no such stretch"),
        (Label(target_seq=9, label="x"), "a record that is not there"),
    ],
)
def test_in_a_new_session(log: EventLog, event: Event, says: str) -> None:
    """None of these may come first; and a refusal changes nothing."""
    refused(log, event, says)


def test_a_request_needs_a_header_and_its_calls_their_results(log: EventLog) -> None:
    """Nothing goes to the model, and no turn ends, while a call is open."""
    log.add(TurnStart(turn=1), UserMessage(turn=1, content="go"))
    request = ModelCall(turn=1, step=1, attempt=1, header_seq=4, request_sha256="")
    refused(log, request, "no header came before")
    log.add(HEADER)
    answer(log, "a", "b")
    refused(log, HEADER, "without a result: a, b")
    refused(log, ModelCall(turn=1, step=2, attempt=1, header_seq=4, request_sha256=""), "without a result")
    refused(log, TurnEnd(turn=1, synthetic=False, reason="completed"), "without a result: a, b")
    refused(log, BranchMove(to_seq=None), "turn 1 is open")


def test_a_call_has_one_result_and_is_called_once(log: EventLog) -> None:
    """Whoever gives it."""
    begin(log)
    answer(log, "a", "b")
    call(log, "a")
    named = ToolCall(turn=1, step=1, call_id="a", name="pay", input={"to": "a"}, policy="ask")
    refused(log, named, "called before")
    other = ToolCall(turn=1, step=1, call_id="b", name="pay", input={"to": "x"}, policy="ask")
    refused(log, other, "the model named another call")
    with pytest.raises(InvalidEvent, match="call_seq must be"):
        result(log, "a", call_seq=None)
    result(log, "a")
    with pytest.raises(KeyError):
        result(log, "a")
    refused(log, ToolCall(turn=1, step=1, call_id="a", name="pay", input={}, policy="ask"), "is not open")


def test_a_call_id_is_used_once_in_a_session(log: EventLog) -> None:
    """Also in another turn: results are told apart by it."""
    whole_turn(log, "a")
    begin(log)
    with pytest.raises(InvalidEvent, match="the call a was made before"):
        answer(log, "a")


def test_who_was_asked_must_have_allowed_just_this_input(log: EventLog) -> None:
    """A decision about another input, or none, is no permission."""
    begin(log)
    answer(log, "a")
    log.add(ApprovalAsked(approval_id="p", call_id="a", input_sha256="1", text="?"))
    wanted = ToolCall(turn=1, step=1, call_id="a", name="pay", input={"to": "a"}, policy="ask")
    refused(log, wanted, "has not allowed it")
    refused(log, ApprovalDecided(approval_id="p", decision="allow", by="me", input_sha256="2"), "another input")
    log.add(ApprovalDecided(approval_id="p", decision="deny", by="me", input_sha256="1"))
    refused(log, wanted, "has not allowed it")
    refused(log, ApprovalDecided(approval_id="p", decision="allow", by="me", input_sha256="1"), "decided before")


def test_a_summary_parts_no_call_from_its_result(log: EventLog) -> None:
    """It begins with no result and ends at no open call."""
    begin(log)
    answer(log, "a", "b")
    for each in ("a", "b"):
        call(log, each)
        result(log, each)
    user, calling, first, last = sorted(log.grammar.surface)
    for ends in ((user, calling), (user, first), (first, last), (last, last)):
        refused(log, Compaction(summary="s", from_seq=ends[0], to_seq=ends[1], tokens_before=0), "it parts a call")
    log.add(Compaction(summary="s", from_seq=calling, to_seq=last, tokens_before=0))
    answer(log)
    end(log)
    assert log.grammar.surface[log.grammar.leaf or 0][1] == "a"


def test_a_branch_goes_on_where_nothing_is_open(log: EventLog) -> None:
    """From the beginning, a message, an answer without calls, the last result of a batch."""
    whole_turn(log, "a")
    user, calling, last, done = sorted(log.grammar.surface)
    refused(log, BranchMove(to_seq=calling), "cannot go on from")
    for to in (None, user, last, done):
        log.add(BranchMove(to_seq=to))
        assert log.grammar.leaf == to
