"""Tests of longrun.memory: what a kill leaves of an agent that saves nothing, and of one that saves notes."""

from __future__ import annotations

import os
import signal
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from longrun.fake_api import FakeApi
from longrun.inbox import make_inbox
from longrun.lease import LOCK_NAME
from longrun.ledger import Record
from longrun.loop import Agent
from longrun.memory import naive_memory_only, naive_notes
from longrun.memory.in_memory import MemoryLedger
from longrun.world import FileOutside, World

if TYPE_CHECKING:
    from longrun.harness import Harness

NOTED = ["set_label T-101", "set_label T-102", "set_label T-103", "set_label T-104", "open_case T-101"]


class Deadly(FileOutside):
    """A world in which the first reply is the last thing that the process does."""

    def effect(self, name: str, *, key: str | None = None, **detail: Any) -> str:
        receipt = super().effect(name, key=key, **detail)
        if name == "send_reply":
            os.kill(os.getpid(), signal.SIGKILL)
        return receipt


def killed_after_the_first_reply(desk: Any, harness: Harness) -> None:
    child = os.fork()
    if child == 0:
        try:
            outside = Deadly(desk.directory / "world.jsonl")
            Agent(desk.agent_directory, harness, FakeApi(), World(outside, make_inbox())).start()
        finally:
            os._exit(1)
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL


@pytest.mark.parametrize(
    ("harness", "left", "again"),
    [
        (naive_memory_only.HARNESS, [], ["open_case", "send_reply"]),
        (naive_notes.HARNESS, [naive_notes.NOTES_NAME], ["send_reply"]),
    ],
    ids=["memory only", "notes"],
)
def test_what_is_left_and_what_the_rerun_does_again(
    desk: Any, harness: Harness, left: list[str], again: list[str]
) -> None:
    """Of the process nothing but the notes; of its acts everything: the customer gets the reply a second time."""
    killed_after_the_first_reply(desk, harness)
    assert sorted(set(desk.files()) - {LOCK_NAME}) == left
    last = desk.agent(harness=harness).resume()
    done = Counter(f"{each.name} {each.detail}" for each in desk.outside.effects if each.counted)
    assert sorted(each.split()[0] for each, count in done.items() if count > 1) == again
    assert (last.status, last.requests_started) == ("done", last.turns)  # what the dead process asked is not counted


def test_notes_tell_what_was_done_and_not_how_far_it_had_come(desk: Any) -> None:
    """Acts of whole turns are noted; turns, tokens and open calls are gone."""
    killed_after_the_first_reply(desk, naive_notes.HARNESS)
    lines = desk.files()[naive_notes.NOTES_NAME].decode().splitlines()
    assert [line.partition(":")[0].removeprefix("- ") for line in lines[1:]] == NOTED
    loaded = naive_notes.load(desk.agent_directory)
    assert loaded is not None
    assert (loaded.turns, loaded.tokens_used, loaded.pending_tool_use) == (0, 0, ())


def test_a_ledger_in_memory_knows_its_own_acts() -> None:
    """As long as it lives it answers as the real one does."""
    ledger = MemoryLedger()
    common: dict[str, Any] = {"run_id": "r", "timeline": "main", "writer_epoch": 1, "tool": "t", "args_digest": "d"}
    records = [
        Record(n=n, key=key, tool_use_id="c", outcome="done", result=str(n), **common)
        for n, key in enumerate(("a", "b", "a"), 1)
    ]
    for record in records:
        ledger.append(record)
    assert (ledger.latest("a"), ledger.latest("b"), ledger.latest("c")) == (records[2], records[1], None)
    assert (ledger.unknown(), ledger.durable) == ([], False)
