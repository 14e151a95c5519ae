"""Tests of longrun.questions: what is asked is kept in files, an answer too, and neither is ever made up."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from longrun import questions
from longrun.capstone import correct
from longrun.capstone.subjects import PAGER, losing_once
from longrun.checkpoint import correct as one_file
from longrun.errors import LeaseHeld, UsageError
from longrun.lease import Lease
from longrun.tools import TOOLS

HARNESSES = {"points": correct.HARNESS, "one file": one_file.HARNESS}
ACT = "T-101/page_oncall"
ASKED = questions.Question(ACT, PAGER, {"ticket": "T-101", "summary": "Checkout is down"})


def waiting(desk: Any, harness: Any, persona: str = "careful") -> Any:
    """A run whose page got no answer."""
    tools = {**TOOLS, PAGER: losing_once(TOOLS[PAGER])}
    return replace(desk.agent(harness=harness, persona=persona), tools=tools).start()


@pytest.fixture(params=HARNESSES)
def harness(request: Any) -> Any:
    return HARNESSES[request.param]


@pytest.mark.parametrize("persona", ["careful", "hasty"])
@pytest.mark.parametrize(("said", "rings"), [("done", 0), ("absent", 1)])
def test_an_answer_lets_the_run_go_on(desk: Any, harness: Any, persona: str, said: Any, rings: int) -> None:
    """Until then every resume waits and asks the same; then it ends, and the page rings if it did not before."""
    last = waiting(desk, harness, persona)
    assert last.status == "waiting"
    for _ in range(2):
        before = desk.files()
        assert questions.open_questions(desk.agent_directory, harness) == [ASKED]
        assert desk.agent(harness=harness, persona=persona).resume() == last
        assert desk.files() == before
    questions.answer(desk.agent_directory, harness, ACT, said)
    end = desk.agent(harness=harness, persona=persona).resume()
    assert (end.status, end.turns > last.turns, len(desk.outside.records(PAGER))) == ("done", True, rings)
    told = [message["content"] for message in end.messages if message["content"] not in ([], "")]
    assert any(questions.WORDS[said] in str(content) for content in told)
    assert desk.agent(harness=harness).resume() == end
    assert questions.open_questions(desk.agent_directory, harness) == []


def test_an_act_that_did_not_happen_and_is_lost_again_is_asked_about_again(desk: Any, harness: Any) -> None:
    """The new attempt is as unknown as the first one was; neither answer stands for the other."""
    waiting(desk, harness)
    questions.answer(desk.agent_directory, harness, ACT, "absent")
    agent = replace(desk.agent(harness=harness), tools={**TOOLS, PAGER: losing_once(TOOLS[PAGER])})
    assert agent.resume().status == "waiting"
    assert [question.act for question in agent.questions()] == [ACT]
    questions.answer(desk.agent_directory, harness, ACT, "done")
    assert desk.agent(harness=harness).resume().status == "done"
    assert desk.outside.records(PAGER) == []


@pytest.mark.parametrize("act", ["T-101/send_reply", "nonsense", ""])
def test_what_is_not_asked_cannot_be_answered(desk: Any, harness: Any, act: str) -> None:
    """The act that is asked about is named, and nothing changes."""
    waiting(desk, harness)
    before = desk.files()
    with pytest.raises(UsageError, match=ACT):
        questions.answer(desk.agent_directory, harness, act, "done")
    assert desk.files() == before


def test_an_answer_is_given_once(desk: Any, harness: Any) -> None:
    """A second person hears that nothing is asked any more; a finished run asks nothing either."""
    waiting(desk, harness)
    questions.answer(desk.agent_directory, harness, ACT, "done")
    with pytest.raises(UsageError, match="nothing is asked"):
        questions.answer(desk.agent_directory, harness, ACT, "absent")
    desk.agent(harness=harness).resume()
    with pytest.raises(UsageError, match="nothing is asked"):
        questions.answer(desk.agent_directory, harness, ACT, "absent")


def test_nobody_answers_where_no_run_is_or_a_process_works(desk: Any, harness: Any) -> None:
    """Both are refused."""
    with pytest.raises(UsageError, match="there is no run"):
        questions.open_questions(desk.agent_directory, harness)
    waiting(desk, harness)
    with Lease.take(desk.agent_directory), pytest.raises(LeaseHeld):
        questions.answer(desk.agent_directory, harness, ACT, "done")
