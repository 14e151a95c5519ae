"""The desk: what a learner's harness gets, and what it is told where it goes wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from crashcourse.desk import PUBLIC_SEED, Corner, Desk, desk_of, inbox_seed
from crashlab.lab import Lab
from longrun.errors import Damaged
from longrun.inbox import DEFAULT_SEED, make_inbox
from longrun.knobs import Knobs
from longrun.stream import Cut

if TYPE_CHECKING:
    from pathlib import Path

REPLY = {"ticket": "T-102", "text": "Sorry.", "refund_yen": 1000}


@pytest.fixture
def events() -> list[tuple[str, Any]]:
    """What the lab was told."""
    return []


@pytest.fixture
def lab(tmp_path: Path, events: list[tuple[str, Any]]) -> Lab:
    """A lab that notes what it is told."""
    return Lab(tmp_path, lambda op, **fields: events.append((op.KIND, fields)))


@pytest.fixture
def desk(lab: Lab) -> Desk:
    """A desk with the default inbox."""
    return desk_of(lab)


def state(**changes: Any) -> dict[str, Any]:
    """The state before the first request."""
    first = {"messages": [{"role": "user", "content": "Go."}], "pending_tool_use": [], "turns": 0}
    return {**first, "tokens_used": 0, "requests_started": 1, **changes}


def test_what_is_saved_is_loaded_by_the_next_process(desk: Desk, lab: Lab, events: list[tuple[str, Any]]) -> None:
    """With its run and its numbers; the lab hears of each save, by a name that says which it is."""
    call = {"id": "toolu_1", "name": "send_reply", "input": REPLY}
    desk.save(state())
    said = {"role": "assistant", "content": [{"type": "tool_use", **call}]}
    asked = [*state()["messages"], said]
    desk.save(state(messages=asked, pending_tool_use=[call], turns=1, tokens_used=7))
    found = desk_of(lab, strict=True).load()
    assert found is not None
    assert (found["seq"], found["parent"], found["run_id"], found["tokens_used"]) == (2, 1, desk.run_id, 7)
    assert found["pending_tool_use"] == [
        {**call, "key": f"{desk.run_id}/T-102/send_reply", "attempts": 1, "started": True}
    ]
    told = [fields.get("name") or fields["value"] for _, fields in events]
    assert told == ["turn0.R", {"seq": 1}, "turn1.A", {"seq": 2}]


def test_a_loaded_state_is_saved_again_with_more_tokens(desk: Desk, lab: Lab) -> None:
    """The four counters follow the sum, so that a strict reader takes it."""
    desk.save(state(tokens_used=7, usage={"input_tokens": 5, "output_tokens": 2}))
    other = desk_of(lab)
    loaded = other.load()
    assert loaded is not None
    other.save({**loaded, "tokens_used": 10, "requests_started": 2})
    found = desk_of(lab, strict=True).load()
    assert found is not None
    assert (found["seq"], found["tokens_used"], sum(found["usage"].values())) == (2, 10, 10)


def test_only_a_strict_desk_refuses_what_makes_no_sense(desk: Desk, lab: Lab) -> None:
    """A turn that nobody took: one believes it, the other calls it damaged. Nothing saved is no damage."""
    assert desk.load() is None
    desk.save(state(turns=1))
    assert desk.load() is not None
    with pytest.raises(Damaged, match="turns is miscounted"):
        desk_of(lab, strict=True).load()


def test_an_opening_keeps_the_evidence_and_clears_what_is_half_written(desk: Desk, lab: Lab) -> None:
    """A ledger without a checkpoint is one that was lost; a temporary file is what a killed save has left."""
    desk.save(state())
    half = lab.dir / "checkpoint.json.0.tmp"
    half.touch()
    assert desk_of(lab).load() is not None
    assert not half.exists()
    (lab.dir / "checkpoint.json").unlink()
    half.touch()
    with pytest.raises(Damaged, match="without a checkpoint"):
        desk_of(lab).load()
    assert half.exists()


def test_a_desk_without_a_ledger_makes_none(lab: Lab) -> None:
    """There it is the learner's own business."""
    desk_of(lab, with_ledger=False).save(state())
    assert [path.name for path in lab.dir.iterdir()] == ["checkpoint.json"]


def test_what_was_saved_does_not_change_afterwards(desk: Desk) -> None:
    """The learner's list goes on growing; the file is as it was."""
    mine = state()
    desk.save(mine)
    mine["messages"].append({"role": "user", "content": "More."})
    mine["messages"][0]["content"] = "Other."
    saved = desk.load()
    assert saved is not None
    assert saved["messages"] == [{"role": "user", "content": "Go."}]


@pytest.mark.parametrize(
    ("broken", "text"),
    [
        (["no"], "expected a dictionary"),
        ({"turns": 1}, "no field 'messages'"),
        (state(turn=1), "'turn' that nobody knows"),
        (state(turns=True), "state\\['turns'\\] is True; expected int"),
        (state(messages="Go."), "expected list"),
        (state(messages=["Go."]), "a message is 'Go.'"),
        (state(pending_tool_use=["toolu_1"]), "an open call is 'toolu_1'"),
        (state(messages=[{"role": "user", "content": {1}}]), "not JSON"),
    ],
)
def test_a_state_that_is_none_is_told_and_not_saved(desk: Desk, broken: Any, text: str) -> None:
    """With the field that is wrong."""
    with pytest.raises(ValueError, match=text):
        desk.save(broken)
    assert desk.load() is None


def test_the_model_refuses_and_breaks_off_as_it_does_in_life(lab: Lab, events: list[tuple[str, Any]]) -> None:
    """A bad conversation gets the server's words, a broken line a ConnectionError; each was a request."""
    desk = desk_of(lab, knobs={1: Knobs(cut=Cut(1, clean=False))})
    with pytest.raises(ValueError, match="400 invalid_request_error"):
        desk.ask([{"role": "assistant", "content": "Go."}])
    with pytest.raises(ConnectionError, match="broke after 1 events"):
        desk.ask([{"role": "user", "content": "Go."}])
    answer = desk.ask([{"role": "user", "content": "Go."}])
    assert (answer["stop_reason"], answer["content"][1]["name"]) == ("tool_use", "list_tickets")
    assert [fields["name"] for _, fields in events] == ["model_request"] * 3


def test_tools_act_and_can_be_looked_up(desk: Desk) -> None:
    """As far as their world can tell: a reply leaves a trace, a page none."""
    assert desk.tools["send_reply"] == {"nature": "non-idempotent", "look_up": True}
    assert desk.tools["page_oncall"] == {"nature": "non-idempotent", "look_up": False}
    assert desk.look_up("send_reply", REPLY) is None
    assert desk.do("send_reply", REPLY) == "reply sent: send_reply-1"
    assert desk.look_up("send_reply", REPLY) == "reply sent (found by look-up)"
    assert desk.look_up("page_oncall", {"ticket": "T-101", "summary": "Down."}) is None
    for name, given in (("send_mail", {}), ("send_reply", {"ticket": "T-102"}), ("read_ticket", {"ticket": "T-999"})):
        with pytest.raises(ValueError, match=r"no tool|takes|no ticket"):
            desk.do(name, given)


def test_a_corner_is_a_world_of_its_own(lab: Lab, events: list[tuple[str, Any]]) -> None:
    """The same act in two corners is two effects of the lab, and each corner counts its own."""
    for name in ("left", "right"):
        corner = Corner(lab, name)
        assert desk_of(corner).do("send_reply", REPLY) == "reply sent: send_reply-1"
        assert [each.name for each in corner.records()] == ["send_reply"]
        assert corner.dir == lab.dir / name
    assert [fields["name"] for _, fields in events] == ["left:send_reply", "right:send_reply"]


@pytest.mark.parametrize("seed", [2, 77, 20_261])
def test_twins_are_like_the_default_inbox(seed: int) -> None:
    """Few letters with an outage and a charge; where it is asked for, in the same order."""
    assert inbox_seed(PUBLIC_SEED) == DEFAULT_SEED
    like = make_inbox(inbox_seed(seed), body_bytes=0)
    assert len(like) <= 4
    same = make_inbox(inbox_seed(seed, same=True), body_bytes=0)
    words = ["down", "harged twice", "Duplicate of", ""]
    assert all(word in ticket.subject for word, ticket in zip(words, same, strict=True))
    assert same[0].ticket != "T-101"
    assert inbox_seed(seed) == inbox_seed(seed)
