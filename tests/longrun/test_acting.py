"""Tests of longrun.effects.acting: what is on the disk at the moment of an act, and what an error on the way leaves."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pytest

from longrun.checkpoint import correct
from longrun.effects import naive_record_first
from longrun.ledger import LEDGER_NAME, Ledger, read_records
from longrun.world import FileOutside

if TYPE_CHECKING:
    from longrun.ledger import Record


@dataclass(eq=False)
class Watched(FileOutside):
    """An outside that calls ``watch(name)`` just before each effect."""

    watch: Any = None

    def effect(self, name: str, *, key: str | None = None, **detail: Any) -> str:
        self.watch(name)
        return super().effect(name, key=key, **detail)


def seen_at_acts(desk: Any, **pieces: Any) -> list[tuple[str, bool, bool]]:
    """Per effect of a run: its name, whether the files say that it is begun, and that it is done."""
    seen = []

    def watch(name: str) -> None:
        saved = correct.load(desk.agent_directory)
        assert saved is not None
        path = desk.agent_directory / LEDGER_NAME
        records, _ = read_records(path, path.read_bytes(), seen=0)
        calls = [call for call in saved.pending_tool_use if call.name == name and call.started]
        begun = [call for call in calls if call.key not in {record.key for record in records}]
        seen.append((name, bool(begun), any(call.key == records[-1].key for call in calls) if records else False))

    agent = desk.agent(harness=replace(correct.HARNESS, **pieces))
    agent.world = replace(agent.world, outside=Watched(desk.outside.path, watch=watch))
    agent.start()
    return seen


def test_at_the_moment_of_an_act_it_is_marked_and_not_recorded(desk: Any) -> None:
    """For each of the nine effects of a run."""
    seen = seen_at_acts(desk)
    assert len(seen) == 9
    assert all(begun for _, begun, _ in seen), seen


def test_the_watch_sees_a_record_that_comes_first(desk: Any) -> None:
    """The test above can fail."""
    seen = seen_at_acts(desk, act=naive_record_first.act)
    assert not any(begun for _, begun, _ in seen), seen
    assert all(done for _, _, done in seen), seen


class Full(Ledger):
    """A ledger whose disk is full as soon as it shall keep a reply."""

    def append(self, record: Record) -> None:
        if record.tool == "send_reply":
            raise OSError(28, "No space left on device")
        super().append(record)


def test_a_record_that_cannot_be_written_stops_the_run(desk: Any) -> None:
    """The model hears nothing of it; who resumes calls the reply that was sent unknown, and finds it in the world."""
    with pytest.raises(OSError, match="No space left"):
        desk.agent(harness=replace(correct.HARNESS, ledger=Full.of_run), persona="hasty").start()
    assert len(desk.outside.records("send_reply")) == 1
    last = desk.agent(persona="hasty").resume()
    assert last.status == "done"
    assert desk.world.view()["replies"] == [["T-101", 0], ["T-102", 1000]]


def test_answers_are_closed_by_one_save(desk: Any) -> None:
    """A harness may put something of its own before it; the save is the agent's."""
    closed: list[tuple[int, int]] = []

    def close(agent: Any, results: list[Any]) -> None:
        before = agent.state.seq
        agent.close(results)
        closed.append((len(results), agent.state.seq - before))

    assert desk.agent(harness=replace(correct.HARNESS, close=close)).start().status == "done"
    assert closed == [(1, 1), (4, 1), (4, 1), (1, 1), (3, 1), (1, 1)]


def test_the_piece_for_the_name_is_asked_for_every_call_of_a_known_tool(desk: Any) -> None:
    """With the run, the tool and the whole call, so that a naive one can take its id."""
    asked: list[tuple[str, bool]] = []

    def key(run_id: str, tool: Any, call: Any) -> str | None:
        asked.append((tool.name, call["id"].startswith("toolu_")))
        return correct.HARNESS.key(run_id, tool, call)

    desk.agent(harness=replace(correct.HARNESS, key=key)).start()
    assert len(asked) == 14
    assert all(whole for _, whole in asked)
