"""Tests of longrun.eventlog.project: what the log says to the model, to a person, and to whoever may repeat an act."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from longrun.eventlog import project
from longrun.eventlog.events import Compaction
from longrun.eventlog.tree import branch
from longrun.messages import check_messages
from tests.longrun.eventlog.sessions import answer, begin, call, end, opened, result, whole_turn

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from longrun.eventlog.log import EventLog


@pytest.fixture
def log(tmp_path: Path) -> Iterator[EventLog]:
    """A new session."""
    with opened(tmp_path) as session:
        yield session


def test_results_come_together_in_the_order_of_the_calls_and_before_any_text(log: EventLog) -> None:
    """In whatever order they came in; and what is said after them is in the same message."""
    begin(log)
    answer(log, "a", "b")
    for each in ("b", "a"):
        call(log, each)
        result(log, each, f"of {each}")
    end(log)
    begin(log, "and now?")
    user, assistant, told = project.messages(log.records)
    assert user == {"role": "user", "content": "go"}
    assert [block.get("id") for block in assistant["content"]] == [None, "a", "b"]
    assert [block.get("content", block.get("text")) for block in told["content"]] == ["of a", "of b", "and now?"]
    check_messages([user, assistant, told])


def test_a_summary_stands_where_its_stretch_stood(log: EventLog) -> None:
    """Also one that sums up another summary; a person still sees all of it."""
    for name in ("a", "b", "c"):
        whole_turn(log, name, text=f"do {name}")
    path = log.grammar.path(log.grammar.leaf)
    log.add(Compaction(summary="did a", from_seq=path[0], to_seq=path[3], tokens_before=1))
    first = log.grammar.leaf
    found = project.messages(log.records)
    assert found[0]["content"][0]["text"] == f"{project.SUMMARY_HEADING}\ndid a"
    assert found[0]["content"][1]["text"] == "do b"
    assert first is not None
    log.add(Compaction(summary="did a and b", from_seq=path[0], to_seq=path[7], tokens_before=1))
    found = project.messages(log.records)
    assert [block["text"] for block in found[0]["content"]] == [f"{project.SUMMARY_HEADING}\ndid a and b", "do c"]
    check_messages(found, may_end_with_assistant=True)
    marks = {row.seq: row.marks for row in project.ui(log.records) if row.marks}
    assert marks == dict.fromkeys((*path[:8], first), ("compacted",))


def test_a_summary_may_name_one_that_has_gone_into_another(log: EventLog) -> None:
    """The second takes the place of the first; the third reaches to the first, and so to where that is now."""
    for name in ("a", "b"):
        whole_turn(log, name, text=f"do {name}")
    path = log.grammar.path(log.grammar.leaf)
    log.add(Compaction(summary="first", from_seq=path[0], to_seq=path[3], tokens_before=1))
    first = log.grammar.leaf
    assert first is not None
    for summary, to in (("second", path[3]), ("third", first)):
        log.add(Compaction(summary=summary, from_seq=path[0], to_seq=to, tokens_before=1))
    found = project.messages(log.records)
    assert [block["text"] for block in found[0]["content"]] == [f"{project.SUMMARY_HEADING}\nthird", "do b"]


def test_a_branch_hides_and_undoes_nothing(log: EventLog) -> None:
    """The model sees the new branch, a person both, and what was done stays done."""
    whole_turn(log, "a", text="one")
    leaf = log.grammar.leaf
    whole_turn(log, "b", text="two")
    branch(log, leaf)
    whole_turn(log, "c", text="three")
    texts = [message["content"] for message in project.messages(log.records) if isinstance(message["content"], str)]
    assert texts == ["one", "three"]
    assert {act.call_id: act.outcome for act in project.effects(log.records)} == {"a": "done", "b": "done", "c": "done"}
    abandoned = [row.text for row in project.ui(log.records) if "abandoned" in row.marks]
    assert abandoned[0] == "two"
    assert len(abandoned) == 4


def test_each_request_can_be_made_again(log: EventLog) -> None:
    """From the newest header and the messages as they stood then: byte for byte, by its digest."""
    whole_turn(log, "a")
    whole_turn(log, "b")
    calls = [record for record in log.records if record.type == "model/call"]
    assert len(calls) == 4
    for record in calls:
        request = project.context(log.records, record.seq)
        assert project.request_sha256(request) == record.data["request_sha256"]
    assert project.request_sha256(project.context(log.records)) not in {each.data["request_sha256"] for each in calls}


def test_there_is_no_request_without_a_header(log: EventLog) -> None:
    """Messages alone make none."""
    with pytest.raises(LookupError, match="no request/header up to record 1"):
        project.context(log.records, 1)
    assert project.messages(log.records) == []


def test_what_a_repair_found_out_is_marked(tmp_path: Path) -> None:
    """A person sees that nobody gave this answer."""
    crashed = opened(tmp_path)
    begin(crashed)
    answer(crashed, "a")
    crashed.abandon()
    with opened(tmp_path) as log:
        assert [row.type for row in project.ui(log.records) if row.marks] == ["tool/result", "turn/end"]
        check_messages(project.messages(log.records))
