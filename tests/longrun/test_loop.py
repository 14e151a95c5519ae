"""Tests of longrun.loop: the order of saves, openings, and the rows of the table in action."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import pytest

from longrun.checkpoint import correct
from longrun.errors import ApiError, Damaged, HistoryExists
from longrun.fake_api import FakeApi
from longrun.lease import LOCK_NAME
from longrun.ledger import LEDGER_NAME, Ledger, Record
from longrun.loop import BLOCKED_TEXT, CONFLICT_TEXT, GAVE_UP_TEXT, TASK, UNKNOWN_TEXT
from longrun.messages import check_messages, text_of, user
from longrun.protocol import CHECKPOINT_NAME, Checkpoint, OpenCall
from longrun.tools import args_digest
from tests.longrun.scripted import DONE, REPLY, Script, call, says

PAGE = {"ticket": "T-101", "summary": "down"}
RUN = "run-1"


def stored(desk: Any, *calls: OpenCall, records: tuple[Record, ...] = (), seq: int = 5) -> None:
    """A directory as a kill may leave it: open calls, and what the ledger knows."""
    content = [call(each.name, each.input, each.id) for each in calls]
    saved = Checkpoint(
        run_id=RUN,
        task=TASK,
        messages=(user(TASK), {"role": "assistant", "content": content}),
        seq=seq,
        parent=seq - 1,
        turns=1,
        requests_started=1,
        requests_saved=1,
        pending_tool_use=calls,
    )
    correct.save(desk.agent_directory, saved)
    ledger = Ledger.create(desk.agent_directory / LEDGER_NAME)
    for record in records:
        ledger.append(record)
    ledger.close()


def opened(name: str, given: dict[str, Any], *, attempts: int = 1) -> OpenCall:
    read = name.startswith(("list", "read", "find"))
    key = None if read else f"{RUN}/{given.get('ticket', 'inbox')}/{name}"
    return OpenCall(id="toolu_1", name=name, input=given, key=key, attempts=attempts, started=attempts > 0)


def recorded(outcome: Any, name: str, given: dict[str, Any], *, n: int = 1) -> Record:
    return Record(
        n=n,
        run_id=RUN,
        timeline="main",
        writer_epoch=1,
        key=f"{RUN}/{given['ticket']}/{name}",
        tool=name,
        args_digest=args_digest(given),
        tool_use_id="toolu_1",
        outcome=outcome,
        result="as recorded",
    )


def answer(last: Checkpoint) -> tuple[str, bool]:
    """The result that the open call got, and whether it is an error."""
    block = last.messages[2]["content"][0]
    return block["content"], block.get("is_error", False)


# --- an uncrashed run -----------------------------------------------------------------------------


def test_a_run_ends_done_and_the_world_is_as_it_should_be(desk: Any) -> None:
    """Seven turns; every ticket labelled, one case, two replies, one page, one report."""
    api = FakeApi()
    last = desk.agent(api).start()
    assert (last.status, last.turns, last.requests_started, last.requests_saved) == ("done", 7, 7, 7)
    assert last.end == {"reason": "end_turn", "text": text_of(last.messages[-1])}
    assert last.usage == api.usage()
    assert last.tokens_used == sum(last.usage.values()) > last.context_tokens > 0
    world = desk.world.view()
    assert world["labels"] == {"T-101": "outage", "T-102": "billing", "T-103": "duplicate", "T-104": "spam"}
    assert (world["cases"], world["pages"]) == (["T-101"], ["T-101"])
    assert world["replies"] == [["T-101", 0], ["T-102", 1000]]
    assert "T-104 spam" in world["report"]
    check_messages(last.messages, may_end_with_assistant=True)


def test_saves_and_records_are_told_in_the_order_of_the_protocol(desk: Any) -> None:
    """R; per turn A, per act S then ledger, B; E. Numbers count up without a gap."""
    told: list[tuple[str, dict[str, int]]] = []
    desk.agent(told=lambda place, value: told.append((place, value))).start()

    def acts(turn: int, count: int) -> list[str]:
        return [f"turn{turn}.tool{index + 1}.{each}" for index in range(count) for each in ("S", "ledger")]

    acts_of_turn = enumerate((0, 0, 4, 1, 3, 1), 1)
    turns = [[f"turn{turn}.A", *acts(turn, count), f"turn{turn}.B"] for turn, count in acts_of_turn]
    assert [place for place, _ in told] == ["R", *itertools.chain(*turns), "E"]
    for kind in ("seq", "ledger"):
        numbers = [value[kind] for _, value in told if kind in value]
        assert numbers == list(range(1, len(numbers) + 1))


def test_a_request_is_counted_in_a_save_before_it_is_sent(desk: Any) -> None:
    """At each request the stored counter has counted it already."""
    api = FakeApi()

    class Watching:
        def reply(self, request: dict[str, Any]) -> dict[str, Any]:
            stored_now = correct.load(desk.agent_directory)
            assert stored_now is not None
            assert stored_now.requests_started == len(api.exchanges) + 1
            assert list(stored_now.messages) == request["messages"]
            return api.reply(request)

    desk.agent(Watching()).start()
    assert len(api.exchanges) == 7


# --- opening --------------------------------------------------------------------------------------


def test_a_plain_start_over_history_is_refused(desk: Any) -> None:
    """A stored run is not overwritten, whether its checkpoint or only its ledger is left."""
    desk.agent().start()
    before = desk.files()
    with pytest.raises(HistoryExists, match="checkpoint"):
        desk.agent().start()
    assert desk.files() == before
    (desk.agent_directory / CHECKPOINT_NAME).unlink()
    with pytest.raises(HistoryExists, match=LEDGER_NAME):
        desk.agent().start()


def test_resume_of_nothing_is_a_start_and_of_the_end_is_nothing(desk: Any) -> None:
    """An empty directory is run; a finished one is left byte for byte, without a request."""
    last = desk.agent().resume()
    before, api = desk.files(), FakeApi()
    assert desk.agent(api).resume() == last
    assert desk.files() == before
    assert api.exchanges == []


@pytest.mark.parametrize("name", [CHECKPOINT_NAME, LEDGER_NAME])
def test_a_file_that_is_gone_is_damage(desk: Any, name: str) -> None:
    """Half of a run is refused, and left as it is."""
    desk.agent().start()
    (desk.agent_directory / name).unlink()
    before = desk.files()
    with pytest.raises(Damaged, match=LEDGER_NAME):
        desk.agent().resume()
    assert desk.files() == before


def test_the_opener_removes_what_a_killed_save_left(desk: Any) -> None:
    """Temporary files go at resume; whatever else lies there stays."""
    desk.agent().start()
    for name in (f"{CHECKPOINT_NAME}.12.tmp", "notes.txt"):
        (desk.agent_directory / name).touch()
    desk.agent().resume()
    assert sorted(desk.files()) == [CHECKPOINT_NAME, LEDGER_NAME, LOCK_NAME, "notes.txt"]


def test_a_run_killed_before_its_ledger_was_there_gets_one(desk: Any) -> None:
    """Only after the very first save may the ledger be missing."""
    first = Checkpoint(run_id=RUN, task=TASK, messages=(user(TASK),), seq=1, requests_started=1)
    correct.save(desk.agent_directory, first)
    assert desk.agent().resume().status == "done"


# --- reconciliation -------------------------------------------------------------------------------


def test_a_recorded_act_is_not_done_again(desk: Any) -> None:
    """Done in the ledger with the same input: its result is given, nothing happens."""
    stored(desk, opened("send_reply", REPLY), records=(recorded("done", "send_reply", REPLY),))
    assert answer(desk.agent(Script([DONE])).resume()) == ("as recorded", False)
    assert desk.world.view()["replies"] == []


def test_the_same_act_with_another_input_is_a_conflict(desk: Any) -> None:
    """Done in the ledger with another input: an error, nothing happens."""
    other = {**REPLY, "refund_yen": 10}
    stored(desk, opened("send_reply", REPLY, attempts=0), records=(recorded("done", "send_reply", other),))
    assert answer(desk.agent(Script([DONE])).resume()) == (CONFLICT_TEXT, True)
    assert desk.world.view()["replies"] == []


def test_a_started_page_is_unknown_and_left_to_a_person(desk: Any) -> None:
    """It is recorded as unknown, not rung again, and the run ends waiting; resuming asks nothing."""
    stored(desk, opened("page_oncall", PAGE))
    agent = desk.agent(Script([DONE]))
    last = agent.resume()
    assert answer(last) == (UNKNOWN_TEXT, True)
    assert (last.status, last.end) == ("waiting", None)
    assert agent.unknown() == [("page_oncall", PAGE)]
    assert desk.world.view()["pages"] == []
    again = desk.agent(Script([]))
    assert again.resume() == last
    assert again.unknown() == [("page_oncall", PAGE)]


def test_an_unknown_page_named_again_is_blocked(desk: Any) -> None:
    """A model that insists is told that a person must decide."""
    stored(desk, opened("page_oncall", PAGE))
    insists = says("tool_use", call("page_oncall", PAGE, "toolu_2"))
    last = desk.agent(Script([insists, DONE])).resume()
    assert last.messages[4]["content"][0]["content"] == BLOCKED_TEXT
    assert last.status == "waiting"
    assert desk.world.view()["pages"] == []


@pytest.mark.parametrize("happened", [True, False])
def test_an_unknown_reply_named_again_is_looked_up(desk: Any, happened: bool) -> None:
    """Found: taken as done. Absent: sent now. Either way once, and the run is done."""
    if happened:
        desk.world.send_reply(**REPLY)
    stored(desk, opened("send_reply", REPLY))
    insists = says("tool_use", call("send_reply", REPLY, "toolu_2"))
    last = desk.agent(Script([insists, DONE])).resume()
    assert answer(last) == (UNKNOWN_TEXT, True)
    assert last.messages[4]["content"][0]["content"].startswith("reply sent")
    assert last.status == "done"
    assert desk.world.view()["replies"] == [["T-101", 0]]


@pytest.mark.parametrize(("happened", "text"), [(True, CONFLICT_TEXT), (False, "reply sent: send_reply-1")])
def test_other_words_do_not_hide_a_reply_that_was_sent(desk: Any, happened: bool, text: str) -> None:
    """The look-up is for what may have been sent: found, other words are a conflict; absent, they are sent."""
    if happened:
        desk.world.send_reply(**REPLY)
    stored(desk, opened("send_reply", REPLY))
    insists = says("tool_use", call("send_reply", {**REPLY, "text": "very soon"}, "toolu_2"))
    last = desk.agent(Script([insists, DONE])).resume()
    assert last.messages[4]["content"][0]["content"] == text
    assert last.status == "done"
    assert len(desk.world.view()["replies"]) == 1


@pytest.mark.parametrize(("happened", "status"), [(True, "done"), (False, "waiting")])
def test_at_the_end_the_world_is_asked_about_what_is_unknown(desk: Any, happened: bool, status: str) -> None:
    """A reply that the model never named again: found is done, absent waits for a person."""
    if happened:
        desk.world.send_reply(**REPLY)
    stored(desk, opened("send_reply", REPLY))
    assert desk.agent(Script([DONE])).resume().status == status


def test_a_started_overwrite_is_run_again(desk: Any) -> None:
    """An idempotent act needs no look-up: the same key makes it nothing new."""
    given = {"ticket": "T-101", "title": "down"}
    desk.world.open_case(key=f"{RUN}/T-101/open_case", **given)
    stored(desk, opened("open_case", given))
    assert answer(desk.agent(Script([DONE])).resume()) == ("case opened: open_case-1", False)
    assert desk.world.view()["cases"] == ["T-101"]


@pytest.mark.parametrize(
    ("name", "given"), [("read_ticket", {"ticket": "T-101"}), ("set_label", {"ticket": "T-101", "label": "spam"})]
)
def test_three_attempts_are_enough(desk: Any, name: str, given: dict[str, Any]) -> None:
    """A call that killed its process three times is given up, and stays given up."""
    attempts = 3
    stored(desk, opened(name, given, attempts=attempts))
    again = says("tool_use", call(name, given, "toolu_2"))
    last = desk.agent(Script([again, DONE])).resume()
    assert answer(last) == (GAVE_UP_TEXT, True)
    assert last.status == "done"
    assert desk.world.view()["labels"] == {}


@pytest.mark.parametrize(("name", "expected"), [("read_ticket", 2), ("set_label", 2), ("send_reply", 1)])
def test_attempts_are_counted_before_they_are_made(desk: Any, name: str, expected: int) -> None:
    """What runs again has its second attempt on disk; a reply that may have been sent has no second."""
    given = {"read_ticket": {"ticket": "T-101"}, "set_label": {"ticket": "T-101", "label": "x"}}.get(name, REPLY)
    stored(desk, opened(name, given))
    seen: list[int] = []

    def save(directory: Any, checkpoint: Checkpoint) -> None:
        seen.extend(each.attempts for each in checkpoint.pending_tool_use)
        correct.save(directory, checkpoint)

    desk.agent(Script([DONE]), harness=replace(correct.HARNESS, save=save)).resume()
    assert seen[-1] == expected


@pytest.mark.parametrize(
    ("name", "given", "text"),
    [
        ("no_such_tool", {}, "there is no tool 'no_such_tool'"),
        ("set_label", {"ticket": "T-101"}, "set_label takes"),
        ("page_oncall", {"ticket": "T-999", "summary": "x"}, "there is no ticket 'T-999'"),
    ],
)
def test_a_call_that_cannot_be_made_is_an_error_result(desk: Any, name: str, given: dict[str, Any], text: str) -> None:
    """The model is told what is wrong; nothing is recorded, nothing happens, the run goes on."""
    last = desk.agent(Script([says("tool_use", call(name, given)), DONE])).start()
    content, is_error = answer(last)
    assert is_error
    assert text in content
    assert last.status == "done"
    assert (last.ledger_seen, desk.outside.effects) == (0, [])


def test_a_refusal_of_the_server_ends_the_process_not_the_run(desk: Any) -> None:
    """An API error passes through, and the stored run can be resumed."""

    class Refusing:
        def reply(self, request: dict[str, Any]) -> dict[str, Any]:
            raise ApiError(400, "invalid_request_error", f"no, not {len(request)}")

    with pytest.raises(ApiError):
        desk.agent(Refusing()).start()
    assert desk.agent().resume().status == "done"
