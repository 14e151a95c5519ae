"""Tests of longrun.rewind.timelines: going back, beside each other, and what neither takes back."""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longrun.errors import HistoryExists, LeaseHeld, UsageError
from longrun.fake_api import FakeApi
from longrun.ledger import LEDGER_NAME, Ledger
from longrun.loop import UNKNOWN_TEXT, Agent
from longrun.messages import normalised, result_text, user
from longrun.protocol import Checkpoint
from longrun.rewind import points, timelines
from longrun.rewind.correct import HARNESS
from longrun.rewind.timelines import Goal, fork, rewind

if TYPE_CHECKING:
    from longrun.ledger import Record

TURN_4 = Goal(turn=4)


def agent(desk: Any, directory: Path | None = None, **more: Any) -> Agent:
    """An agent that keeps points, in the desk's directory or in another one."""
    seed = more.pop("seed", 0)
    return Agent(directory or desk.agent_directory, HARNESS, FakeApi("hasty", seed), desk.world, **more)


def records(desk: Any) -> list[Record]:
    ledger = Ledger.open(desk.agent_directory / LEDGER_NAME, seen=0)
    ledger.close()
    return ledger.records


def effects(desk: Any) -> Counter[str]:
    return Counter(f"{each.name} {each.detail}" for each in desk.outside.effects if each.counted)


def files(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (directory / points.POINTS_NAME).iterdir()}


class Stop:
    """Stops the agent at one place, as a kill would."""

    def __init__(self, place: str) -> None:
        self.place = place

    def __call__(self, place: str, _value: dict[str, int]) -> None:
        if place == self.place:
            raise KeyboardInterrupt


# --- rewind ------------------------------------------------------------------------------------------


def test_a_rewind_unsends_nothing_and_forgets_nothing(desk: Any) -> None:
    """The new line comes to the same end, no act is done again, no point is touched, and no counter falls."""
    first = agent(desk).start()
    before, done = files(desk.agent_directory), effects(desk)
    copy = rewind(HARNESS, desk.agent_directory, TURN_4)
    assert (copy.turns, copy.status, copy.timeline) == (4, "running", f"main@{first.seq + 1}")
    assert (copy.seq, copy.tokens_used, copy.requests_started) == (
        first.seq + 1,
        first.tokens_used,
        first.requests_started,
    )
    assert points.load(desk.agent_directory) == copy
    last = agent(desk).resume()
    assert normalised(last.messages) == normalised(first.messages)
    assert effects(desk) == done
    assert files(desk.agent_directory).items() >= before.items()
    assert last.tokens_used > first.tokens_used
    assert last.requests_started == first.requests_started + 3


def test_another_body_for_an_act_that_was_done_is_a_conflict(desk: Any) -> None:
    """A model that now finds other words is told so; nobody gets a second mail."""
    agent(desk).start()
    done = effects(desk)
    rewind(HARNESS, desk.agent_directory, TURN_4)
    last = agent(desk, seed=1).resume()
    assert last.status == "done"
    assert effects(desk) == done
    told = [result_text(block) for message in last.messages[9:] for block in _results(message)]
    assert sum(text.startswith("conflict") for text in told) == 2  # both replies; the page has the same words


def _results(message: Any) -> list[Any]:
    content = message["content"]
    return [] if isinstance(content, str) else [block for block in content if block["type"] == "tool_result"]


@pytest.mark.parametrize("seed", [0, 1])
def test_what_was_begun_in_the_abandoned_turn_is_not_begun_again(desk: Any, seed: int) -> None:
    """A reply whose outcome nobody recorded is looked up by the new line; in other words it is left to a person."""
    outside = desk.outside

    def killed(*_given: Any) -> None:
        raise KeyboardInterrupt

    harness = replace(HARNESS, ledger=lambda directory, saved: _Dying(HARNESS.ledger(directory, saved), killed))
    world = desk.world
    with pytest.raises(KeyboardInterrupt):
        Agent(desk.agent_directory, harness, FakeApi("hasty"), world, Stop("turn5.A")).start()
    with pytest.raises(KeyboardInterrupt):
        Agent(desk.agent_directory, harness, FakeApi("hasty"), world).resume()
    assert len(desk.world.find_replies("T-101")) == 1, outside
    assert [record.outcome for record in records(desk)] == ["done"] * 5
    rewind(HARNESS, desk.agent_directory, TURN_4)
    assert [record.outcome for record in records(desk)][5:] == ["unknown"]
    assert records(desk)[5].result == UNKNOWN_TEXT
    last = agent(desk, seed=seed).resume()
    assert len(desk.world.find_replies("T-101")) == 1
    assert last.status == ("waiting" if seed else "done")


class _Dying:
    """A ledger whose owner dies before it records a reply."""

    def __init__(self, ledger: Any, die: Any) -> None:
        self._ledger, self._die = ledger, die

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ledger, name)

    def append(self, record: Record) -> None:
        if record.tool == "send_reply":
            self._die()
        self._ledger.append(record)


def test_a_rewind_that_is_asked_for_twice_keeps_both(desk: Any) -> None:
    """Each is a point; the line walks past what it left, and a point is also found by its number."""
    agent(desk).start()
    for turn in (5, 2):
        rewind(HARNESS, desk.agent_directory, Goal(turn=turn))
    with pytest.raises(UsageError, match="end of turn 4"):
        rewind(HARNESS, desk.agent_directory, TURN_4)
    there = points.numbers(desk.agent_directory)
    target = next(seq for seq in there if points.read_point(desk.agent_directory, seq).turns == 4)
    assert rewind(HARNESS, desk.agent_directory, Goal(seq=target)).parent == target


def test_nobody_rewinds_under_a_live_process(desk: Any) -> None:
    """The lease is taken, as by any other opener; nothing changes."""
    refused: list[str] = []

    def told(place: str, _value: dict[str, int]) -> None:
        if place == "turn5.A":
            before = files(desk.agent_directory)
            with pytest.raises(LeaseHeld):
                rewind(HARNESS, desk.agent_directory, TURN_4)
            assert files(desk.agent_directory) == before
            refused.append(place)

    assert agent(desk, told=told).start().status == "done"
    assert refused


@pytest.mark.parametrize("fields", [{}, {"seq": 1, "turn": 1}])
def test_a_goal_is_one_thing(fields: dict[str, int]) -> None:
    """A number or a turn, not both and not neither."""
    with pytest.raises(UsageError, match="either which point"):
        Goal(**fields)


def test_where_nothing_is_there_is_nothing_to_go_back_to(desk: Any) -> None:
    """Neither a run nor such a point."""
    with pytest.raises(UsageError, match="holds no points"):
        rewind(HARNESS, desk.agent_directory, TURN_4)
    agent(desk).start()
    with pytest.raises(UsageError, match="there is no point 99"):
        rewind(HARNESS, desk.agent_directory, Goal(seq=99))


# --- fork --------------------------------------------------------------------------------------------


def test_a_fork_has_a_head_of_its_own_and_the_ledger_of_the_run(desk: Any) -> None:
    """Made while the run is at work, taken to its end there, and both ends are right: no act is done twice."""
    ends: list[Checkpoint] = []

    def told(place: str, _value: dict[str, int]) -> None:
        if place == "turn5.A":  # not amid an act: that is held until it is recorded
            ends.append(agent(desk, fork(HARNESS, desk.agent_directory, "other", TURN_4)).resume())

    main = agent(desk, told=told).start()
    (other,) = ends
    assert (main.timeline, other.timeline, other.status) == ("main", "other", "done")
    assert set(effects(desk).values()) == {1}
    assert [record.n for record in records(desk)] == list(range(1, 10))
    assert {record.timeline for record in records(desk)} == {"main", "other"}
    place = timelines.place_of(desk.agent_directory, "other")
    assert points.load(place) == other
    assert points.load(desk.agent_directory) == main
    assert not (place / LEDGER_NAME).exists()


def test_a_fork_of_a_fork_and_its_rewind_stay_in_one_run(desk: Any) -> None:
    """The run's directory is that of all, and each timeline has a name of its own."""
    agent(desk).start()
    other = fork(HARNESS, desk.agent_directory, "other", TURN_4)
    agent(desk, other).resume()
    copy = rewind(HARNESS, other, Goal(turn=5))
    third = fork(HARNESS, other, "third", Goal(turn=5))
    assert third.parent == other.parent
    assert copy.timeline == f"other@{copy.seq}"
    assert agent(desk, third).resume().status == "done"
    assert set(effects(desk).values()) == {1}


@pytest.mark.parametrize("name", ["", "..", "a/b", "a b", "-x", "x" * 65, "main@7"])
def test_a_bad_name_is_refused_before_anything_is_made(desk: Any, name: str) -> None:
    """It becomes a folder and part of the names of timelines."""
    agent(desk).start()
    with pytest.raises(UsageError, match="no name for a fork"):
        fork(HARNESS, desk.agent_directory, name, TURN_4)
    assert not (desk.agent_directory / points.FORKS_NAME).exists()


def test_a_fork_is_made_once(desk: Any) -> None:
    """A second one of that name is refused; one that a kill left unfinished is finished."""
    agent(desk).start()
    place = timelines.place_of(desk.agent_directory, "other")
    (place / points.POINTS_NAME).mkdir(parents=True)
    (place / points.POINTS_NAME / "00000014.json.77.tmp").write_bytes(b"{")
    assert fork(HARNESS, desk.agent_directory, "other", TURN_4) == place
    assert len(os.listdir(place / points.POINTS_NAME)) == 1
    with pytest.raises(HistoryExists, match="there is a fork 'other' already"):
        fork(HARNESS, desk.agent_directory, "other", TURN_4)


# --- any sequence ------------------------------------------------------------------------------------

STEPS = st.lists(st.tuples(st.sampled_from(["save", "rewind", "fork"]), st.integers(0, 30), st.integers(0, 500)))


@given(steps=STEPS)
def test_whatever_is_done_in_whatever_order(steps: list[tuple[str, int, int]]) -> None:
    """Numbers are unique, old points keep their bytes, the head is what was written last, and no counter falls."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None) as folder:
        run = Path(folder)
        last = {run: Checkpoint(run_id="r", task="t", messages=(user("t"),), seq=1)}
        points.save(run, last[run])
        Ledger.create(run / LEDGER_NAME).close()
        for number, (step, where, cost) in enumerate(steps):
            directory = sorted(last)[where % len(last)]
            before = {place: files(place) for place in last}
            goal = Goal(seq=points.numbers(directory)[where % len(points.numbers(directory))])
            if step == "save":
                last[directory] = _spent(last[directory], cost)
                points.save(directory, last[directory])
            elif step == "rewind":
                last[directory] = rewind(HARNESS, directory, goal)
            else:
                directory = fork(HARNESS, directory, f"fork-{number}", goal)
                (begun,) = points.numbers(directory)
                last[directory] = points.read_point(directory, begun)
            for place, held in before.items():
                assert files(place).items() >= held.items()
                assert len(files(place)) == len(held) + (step != "fork" and place == directory)
            assert {place: points.load(place) for place in last} == last
        assert _timelines_of(last) == len({point.timeline for place in last for point in _line(place)})
        for place in last:
            spent = [point.tokens_used for point in _line(place)]
            assert spent == sorted(spent)


def _spent(head: Checkpoint, cost: int) -> Checkpoint:
    usage = {**head.usage, "input_tokens": head.usage["input_tokens"] + cost}
    return replace(head, seq=head.seq + 1, parent=head.seq, usage=usage, tokens_used=head.tokens_used + cost)


def _line(place: Path) -> list[Checkpoint]:
    return [points.read_point(place, seq) for seq in points.numbers(place)]


def _timelines_of(last: dict[Path, Checkpoint]) -> int:
    """One per directory, and one per rewind: a point whose parent is not the one before it, or that copies it."""
    return len(last) + sum(
        "@" in point.timeline and point.timeline.endswith(f"@{point.seq}") for place in last for point in _line(place)
    )
