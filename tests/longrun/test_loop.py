"""Tests of longrun.loop: the order of saves, stop reasons, openings, and the rows of the table in action."""

from __future__ import annotations

import itertools
import os
import signal
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from longrun.checkpoint import correct
from longrun.errors import ApiError, Damaged, HistoryExists, IncompleteResponse
from longrun.fake_api import FakeApi
from longrun.knobs import Knobs
from longrun.lease import LOCK_NAME
from longrun.ledger import LEDGER_NAME, Ledger, Record
from longrun.loop import BLOCKED_TEXT, CONFLICT_TEXT, GAVE_UP_TEXT, TASK, UNKNOWN_TEXT, Agent
from longrun.messages import check_messages, text_of, user
from longrun.model import STOP_REASONS
from longrun.protocol import CHECKPOINT_NAME, NO_USAGE, Checkpoint, OpenCall
from longrun.tools import POISON, TOOLS, args_digest

USAGE = {**NO_USAGE, "input_tokens": 5, "output_tokens": 2}
TEXT = {"type": "text", "text": "well"}
REPLY = {"ticket": "T-101", "text": "soon", "refund_yen": 0}
PAGE = {"ticket": "T-101", "summary": "down"}
RUN = "run-1"


@dataclass
class Script:
    """A model that says what it is told to, for answers that the fake server never gives."""

    answers: list[Any]
    requests: list[Any] = field(default_factory=list)

    def reply(self, request: dict[str, Any]) -> dict[str, Any]:
        self.requests.append(request)
        return {"usage": USAGE, **self.answers.pop(0)}


def says(reason: str | None, *content: Any) -> dict[str, Any]:
    return {"stop_reason": reason, "content": list(content or [TEXT])}


def call(name: str, given: dict[str, Any], identity: str = "toolu_1") -> dict[str, Any]:
    return {"type": "tool_use", "id": identity, "name": name, "input": given}


DONE = says("end_turn")


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


# --- stop reasons ---------------------------------------------------------------------------------


@pytest.mark.parametrize("reason", ["max_tokens", "refusal", "model_context_window_exceeded"])
def test_a_stop_that_is_no_end_is_stored_as_stopped(desk: Any, reason: str) -> None:
    """The run stops with the reason, and resuming it asks nothing."""
    last = desk.agent(Script([says(reason)])).start()
    assert (last.status, last.end) == ("stopped", {"reason": reason, "text": "well"})
    assert desk.agent(Script([])).resume() == last


def test_every_stop_reason_of_the_server_ends_as_the_protocol_says(desk: Any) -> None:
    """Met on the third turn: the two ends are done, a pause goes on, the three stops are stopped, and stay so."""
    statuses = {}
    for number, reason in enumerate(STOP_REASONS):
        other = type(desk)(desk.directory / str(number))
        other.agent_directory.mkdir(parents=True)
        api = FakeApi(knobs={3: Knobs(stop_reason=reason)})
        last = other.agent(api).start()
        assert api.refusals == []
        assert last.requests_started == last.requests_saved == len(api.exchanges)
        assert (last.end or {}).get("reason") == (reason if last.turns < 7 else "end_turn")
        assert other.agent(Script([])).resume() == last
        statuses[reason] = (last.status, last.turns, len(other.outside.effects))
    assert statuses == {
        "end_turn": ("done", 3, 0),
        "stop_sequence": ("done", 3, 0),
        "tool_use": ("done", 7, 9),
        "pause_turn": ("done", 8, 9),
        "max_tokens": ("stopped", 3, 0),
        "refusal": ("stopped", 2, 0),  # it says nothing, and nothing is no message
        "model_context_window_exceeded": ("stopped", 3, 0),
    }


def test_an_answer_that_says_nothing_ends_the_run_without_a_message(desk: Any) -> None:
    """An empty end_turn is an end; an empty message would be refused by the server if it were sent back."""
    last = desk.agent(Script([{"stop_reason": "end_turn", "content": []}])).start()
    assert (last.status, last.turns, last.requests_saved, len(last.messages)) == ("done", 0, 1, 1)
    assert last.end == {"reason": "end_turn", "text": ""}


def test_blank_texts_are_not_kept(desk: Any) -> None:
    """The API sends them, and refuses them when they come back."""
    blank = {"type": "text", "text": "\n\n"}
    last = desk.agent(Script([says("tool_use", blank, call("list_tickets", {})), DONE])).start()
    assert [block["type"] for block in last.messages[1]["content"]] == ["tool_use"]


def test_calls_of_an_answer_that_was_cut_short_are_kept_and_never_run(desk: Any) -> None:
    """max_tokens behind a whole call: stopped, the call stands open in the checkpoint, nothing was done."""
    named = call("send_reply", REPLY)
    last = desk.agent(Script([says("max_tokens", TEXT, named)])).start()
    assert (last.status, [each.id for each in last.pending_tool_use]) == ("stopped", ["toolu_1"])
    assert correct.load(desk.agent_directory) == last
    assert desk.agent(Script([])).resume() == last
    assert desk.outside.effects == []


def test_the_cap_on_turns_counts_over_all_processes(desk: Any) -> None:
    """At the limit the run is stopped without a further request, also where a resumed process meets it."""
    api = FakeApi()
    agent = desk.agent(api)
    agent.turn_limit = 3
    last = agent.start()
    assert (last.status, last.turns, last.end["reason"], len(api.exchanges)) == ("stopped", 3, "turn_limit", 3)


def test_a_poisonous_read_is_given_up_after_three_deaths(desk: Any) -> None:
    """Three processes die of it by SIGKILL; the fourth tells the model, and comes to the end."""

    def agent() -> Agent:
        knobs = {6: Knobs(poison=True)}
        return replace(desk.agent(FakeApi(knobs=knobs)), tools={**TOOLS, POISON.name: POISON})

    deaths = []
    for _ in range(3):
        child = os.fork()
        if child == 0:
            try:
                agent().resume()
            finally:
                os._exit(0)
        deaths.append(os.WTERMSIG(os.waitpid(child, 0)[1]))
    assert deaths == [signal.SIGKILL] * 3
    last = agent().resume()
    results = [block for message in last.messages[1:] if message["role"] == "user" for block in message["content"]]
    assert [block["content"] for block in results if block.get("is_error")] == [GAVE_UP_TEXT]
    assert (last.status, last.writer_epoch) == ("done", 4)


def test_a_pause_goes_on_with_the_transcript_as_it_is(desk: Any) -> None:
    """After pause_turn the same transcript is sent again, counted as a request of its own."""
    model = Script([says("pause_turn"), DONE])
    last = desk.agent(model).start()
    assert [len(request["messages"]) for request in model.requests] == [1, 2]
    assert (last.status, last.turns, last.requests_started) == ("done", 2, 2)


@pytest.mark.parametrize(
    "cut",
    [
        says(None),
        says("a new reason"),
        {"stop_reason": "end_turn", "content": None},
        {"stop_reason": "pause_turn", "content": []},
        says("end_turn", {"type": "thinking", "thinking": "well"}),
        says("tool_use"),
        says("end_turn", call("list_tickets", {})),
        says("tool_use", {**call("list_tickets", {}), "input": "{"}),
    ],
)
def test_nothing_of_an_incomplete_answer_is_saved(desk: Any, cut: dict[str, Any]) -> None:
    """The run fails loudly, its files stay as they were, and resume asks again."""
    with pytest.raises(IncompleteResponse):
        desk.agent(Script([cut])).start()
    saved = correct.load(desk.agent_directory)
    assert saved is not None
    assert (saved.turns, saved.requests_started, saved.requests_saved) == (0, 1, 0)
    last = desk.agent(Script([DONE])).resume()
    assert (last.status, last.requests_started, last.requests_saved) == ("done", 2, 1)


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
