"""Tests of longrun.resume.without_ledger: what it takes for begun, and what it leaves to a person."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from longrun.checkpoint import correct
from longrun.ledger import LEDGER_NAME, record_of
from longrun.loop import TASK, UNKNOWN_TEXT
from longrun.messages import tool_result, user
from longrun.protocol import Checkpoint, OpenCall
from longrun.resume import without_ledger
from longrun.resume.without_ledger import NoLedger
from tests.longrun.scripted import REPLY, call

if TYPE_CHECKING:
    from pathlib import Path

PAGE = {"ticket": "T-101", "summary": "down"}
OPEN = (
    OpenCall(id="toolu_1", name="read_ticket", input={"ticket": "T-101"}, key=None),
    OpenCall(id="toolu_2", name="page_oncall", input=PAGE, key="run-1/T-101/page_oncall"),
    OpenCall(id="toolu_3", name="send_reply", input=REPLY, key="run-1/T-101/send_reply"),
)
STATE = Checkpoint(
    run_id="run-1",
    task=TASK,
    messages=(user(TASK), {"role": "assistant", "content": [call(each.name, each.input, each.id) for each in OPEN]}),
    seq=2,
    turns=1,
    requests_started=1,
    requests_saved=1,
    pending_tool_use=OPEN,
)


def test_every_open_call_is_taken_for_begun(desk: Any) -> None:
    """A resume answers both acts with "unknown"; the careful model sends the reply then, and leaves the page."""
    correct.save(desk.agent_directory, STATE)
    agent = desk.agent(harness=without_ledger.HARNESS)
    last = agent.resume()
    told = [block["content"] for block in last.messages[2]["content"]]
    assert told[1:] == [UNKNOWN_TEXT, UNKNOWN_TEXT]
    assert (last.status, [name for name, _ in agent.unknown()]) == ("waiting", ["page_oncall"])
    assert desk.world.view()["pages"] == []
    assert LEDGER_NAME not in desk.files()


def test_a_later_process_reads_in_the_transcript_what_is_left_to_a_person(tmp_path: Path) -> None:
    """A page that nobody knows of, and no reply: the world can be asked for that. A refusal in other words is none."""
    results = [tool_result(each.id, UNKNOWN_TEXT, is_error=True) for each in OPEN[1:]]
    told = {"role": "user", "content": [tool_result("toolu_1", "read"), *results]}
    saved = replace(STATE, messages=(*STATE.messages, told), pending_tool_use=())
    (record,) = NoLedger.open(tmp_path, saved).unknown()
    assert (record.key, record.tool_use_id, record.outcome) == ("run-1/T-101/page_oncall", "toolu_2", "unknown")
    results[0]["content"] = "blocked"
    assert NoLedger.open(tmp_path, saved).unknown() == []


def test_nothing_is_known_of_an_act_that_was_done() -> None:
    """Nor does it claim to keep anything."""
    ledger = NoLedger()
    ledger.append(record_of(STATE, OPEN[2], "done", "reply sent"))
    assert (ledger.latest(OPEN[2].key or ""), ledger.unknown(), ledger.durable) == (None, [], False)
