"""Tests of longrun.eventlog.agent: the loop on a log, its barriers, and the two processes of the demonstration."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import longrun
from longrun.errors import ApiError, OutcomeUnknown
from longrun.eventlog import project
from longrun.eventlog.agent import GO_ON, LogAgent, asking
from longrun.eventlog.opening import Opening, inspect, open_log
from longrun.fake_api import FakeApi
from longrun.inbox import SHORT_BODY_BYTES, make_inbox
from longrun.knobs import Knobs
from longrun.messages import check_messages
from longrun.stream import Cut
from longrun.tools import TOOLS
from longrun.world import FileOutside, World
from tests.longrun.eventlog.sessions import NAME, opened, segment

if TYPE_CHECKING:
    from longrun.model import Model

PROGRAM = Path(__file__).parents[1] / "programs" / "dies_in_a_turn.py"


def desk(root: Path) -> World:
    return World(FileOutside(root / "world"), make_inbox(body_bytes=SHORT_BODY_BYTES))


def kinds(root: Path) -> list[str]:
    return [record.type for record in inspect(root, NAME).records]


def test_two_processes_share_nothing_but_the_log(tmp_path: Path) -> None:
    """A dies in its turn, the result is durable; B adds that the turn was interrupted, and goes on with turn 2.

    The history is byte for byte what A wrote, then what was announced; nothing is written anew.
    """
    environment = {**os.environ, "PYTHONPATH": str(Path(longrun.__file__).parents[1])}
    died = subprocess.run([sys.executable, PROGRAM, tmp_path, NAME], env=environment, check=False)
    assert died.returncode == -signal.SIGKILL
    of_a = segment(tmp_path).read_bytes()
    announced = inspect(tmp_path, NAME)
    told_a = ["session/start", "writer/start", "turn/start", "user/message", "request/header", "model/call"]
    told_a += ["assistant/message", "tool/call", "tool/result", "model/call"]
    assert [record.type for record in announced.records] == told_a
    assert [event.data() for event in announced.repairs] == [{"turn": 1, "synthetic": True, "reason": "interrupted"}]
    messages = project.messages(announced.records)
    world = desk(tmp_path)
    with opened(tmp_path, ask=asking(world, TOOLS)) as log:
        assert segment(tmp_path).read_bytes().startswith(of_a)
        assert [record.type for record in log.records[len(told_a) :]] == ["writer/start", "turn/end"]
        assert project.messages(log.records) == messages
        before = project.context(log.records)
        assert (before["model"], before["messages"]) == ("claude-fake-1", messages)
        assert LogAgent(log, FakeApi(), world).triage("never said twice") == "completed"
    whole = segment(tmp_path).read_bytes()
    assert whole.startswith(of_a)
    found = inspect(tmp_path, NAME)
    ends = [(record.data["turn"], record.data["reason"]) for record in found.records if record.type == "turn/end"]
    assert ends == [(1, "interrupted"), (2, "completed")]
    again = project.messages(found.records)
    assert again[: len(messages) - 1] == messages[:-1]
    assert again[len(messages) - 1]["content"][-1] == {"type": "text", "text": GO_ON}
    check_messages(again, may_end_with_assistant=True)


class Watching:
    """A model, and a world, that look at the files when they are reached."""

    def __init__(self, root: Path, api: FakeApi) -> None:
        self.root, self.api, self.seen = root, api, list[str]()

    def reply(self, request: dict[str, Any]) -> dict[str, Any]:
        """What is durable when the model is asked."""
        scan = inspect(self.root, NAME)
        assert scan.records[-1].type == "model/call"
        assert project.request_sha256(request) == scan.records[-1].data["request_sha256"]
        self.seen.append("model")
        return self.api.reply(request)

    def effect(self, outside: FileOutside, name: str, **given: Any) -> str:
        """What is promised when something is done outside."""
        scan = inspect(self.root, NAME)
        assert (scan.records[-1].type, scan.records[-1].data["name"]) == ("tool/call", name)
        assert scan.promised == scan.records[-1].seq
        self.seen.append("world")
        return outside.effect(name, **given)


def test_nothing_is_asked_and_nothing_done_before_it_is_in_the_log(tmp_path: Path) -> None:
    """B1: the request is durable. B2: the call is promised. B4: the end is promised before anyone is told."""
    outside = FileOutside(tmp_path / "world")
    watching = Watching(tmp_path, FakeApi())

    class Guarded:
        records = outside.records

        def effect(self, name: str, **given: Any) -> str:
            return watching.effect(outside, name, **given)

    promises: list[int] = []

    def told(_place: str, promised: dict[str, Any] | None) -> None:
        if promised is not None:
            promises.append(inspect(tmp_path, NAME).promised - promised["seq"])

    world = World(Guarded(), make_inbox(body_bytes=SHORT_BODY_BYTES))
    with opened(tmp_path) as log:
        assert LogAgent(log, watching, world, told=told).triage("go") == "completed"
    assert watching.seen.count("model") == 7
    assert watching.seen.count("world") == 9
    assert set(promises) == {0}


def answers(root: Path, model: Model, *, text: str = "go") -> str:
    with opened(root) as log:
        return LogAgent(log, model, desk(root)).turn(text)


@pytest.mark.parametrize("cut", [Cut(8), Cut("yen back", clean=False)])
def test_an_answer_that_is_not_whole_is_asked_for_again(tmp_path: Path, cut: Cut) -> None:
    """It is a fact that there was one; nothing of it is kept."""
    assert answers(tmp_path, FakeApi(knobs={5: Knobs(cut=cut)})) == "completed"
    found = inspect(tmp_path, NAME).records
    errors = [record.data for record in found if record.type == "model/error"]
    assert [(error["kind"], error["attempt"]) for error in errors] == [("incomplete", 1)]
    assert len(desk(tmp_path).view()["replies"]) == 2


def test_three_answers_that_are_not_whole_end_the_turn(tmp_path: Path) -> None:
    """As failed; the next turn may try again."""
    assert answers(tmp_path, FakeApi(knobs={2: Knobs(cut=Cut(3), times=None)})) == "failed"
    assert kinds(tmp_path).count("model/error") == 3
    assert answers(tmp_path, FakeApi(), text="again") == "completed"


STOPS = [("max_tokens", "limit"), ("refusal", "failed"), ("pause_turn", "completed")]


@pytest.mark.parametrize(("stop", "reason"), STOPS)
def test_every_stop_reason_ends_or_goes_on(tmp_path: Path, stop: str, reason: str) -> None:
    """And the transcript stays one that the server takes."""
    assert answers(tmp_path, FakeApi(knobs={3: Knobs(stop_reason=stop)})) == reason
    with opened(tmp_path) as log:
        assert LogAgent(log, FakeApi(), desk(tmp_path)).turn("go on") == "completed"
    check_messages(project.messages(inspect(tmp_path, NAME).records), may_end_with_assistant=True)


def test_what_the_server_refuses_is_a_fact_too(tmp_path: Path) -> None:
    """With its status; the error goes to the caller, the turn is closed by the next opening."""

    class Down:
        def reply(self, _request: dict[str, Any]) -> dict[str, Any]:
            raise ApiError(529, "overloaded_error", "later")

    with pytest.raises(ApiError):
        answers(tmp_path, Down())
    assert kinds(tmp_path)[-1] == "model/error"
    assert answers(tmp_path, FakeApi(), text="again") == "completed"


def test_a_call_that_kills_three_times_is_given_up(tmp_path: Path) -> None:
    """Each death is a fact in the log; the fourth attempt is not made."""
    deaths = []

    def dies(*_given: object) -> str:
        deaths.append(1)
        raise KeyboardInterrupt

    tools = {**TOOLS, "list_tickets": replace(TOOLS["list_tickets"], run=dies)}
    for _ in range(3):
        log = opened(tmp_path)
        with pytest.raises(KeyboardInterrupt):
            LogAgent(log, FakeApi(), desk(tmp_path), tools=tools).triage("go")
        log.abandon()
    with opened(tmp_path) as log:
        LogAgent(log, FakeApi(), desk(tmp_path), tools=tools).triage("go")
        denied = [record.data["outcome"] for record in log.records if record.type == "tool/result"]
    assert len(deaths) == 3
    assert denied[:4] == ["unknown", "unknown", "unknown", "denied"]


def test_an_unknown_outcome_is_not_repeated_blindly(tmp_path: Path) -> None:
    """The hasty model names the page again; it is blocked, on this branch and on any other."""

    def vanishes(*_given: object) -> str:
        raise OutcomeUnknown

    tools = {**TOOLS, "page_oncall": replace(TOOLS["page_oncall"], run=vanishes)}
    with open_log(tmp_path, NAME, Opening()) as log:
        assert LogAgent(log, FakeApi("hasty"), desk(tmp_path), tools=tools).triage("go") == "completed"
        pages = [act.outcome for act in project.effects(log.records) if act.name == "page_oncall"]
        results = [record.data["outcome"] for record in log.records if record.type == "tool/result"]
    assert pages == ["unknown"]
    assert results.count("denied") == 1
