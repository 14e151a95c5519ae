"""Tests of longrun.eventlog.tree: branches that outlive their process, and forks that know what was done."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from longrun.errors import UsageError
from longrun.eventlog import project
from longrun.eventlog.agent import LogAgent, asking
from longrun.eventlog.errors import InvalidEvent
from longrun.eventlog.events import TurnEnd
from longrun.eventlog.opening import Opening, inspect, open_log
from longrun.eventlog.tree import branch, fork, targets
from longrun.fake_api import FakeApi
from longrun.inbox import SHORT_BODY_BYTES, make_inbox
from longrun.messages import check_messages
from longrun.tools import TOOLS
from longrun.world import FileOutside, World
from tests.longrun.eventlog.sessions import NAME, begin, opened, segment, whole_turn

if TYPE_CHECKING:
    from pathlib import Path


def test_the_leaf_outlives_its_process(tmp_path: Path) -> None:
    """A branch that was taken and not yet written on is gone on with after a restart."""
    with opened(tmp_path) as log:
        whole_turn(log, "a")
        leaf = log.grammar.leaf
        whole_turn(log, "b")
        branch(log, leaf, summary="b was a mistake")
        log.abandon()
    with opened(tmp_path) as log:
        assert log.grammar.leaf == project.leaf_at(log.records) == leaf
        whole_turn(log, "c")
        assert len(project.messages(log.records)) == 8


def test_every_target_makes_a_transcript_that_the_server_takes(tmp_path: Path) -> None:
    """And from no other record a branch goes on."""
    with opened(tmp_path) as log:
        whole_turn(log, "a")
        whole_turn(log, "b")
        for seq in targets(log.grammar):
            branch(log, seq)
            begin(log, "other")
            check_messages(project.messages(log.records))
            log.add(TurnEnd(turn=log.grammar.turn, synthetic=False, reason="completed"))
        with pytest.raises(InvalidEvent, match="cannot go on from"):
            branch(log, 1)


def test_a_fork_is_a_session_of_its_own_with_the_same_branch(tmp_path: Path) -> None:
    """It names where it parted; its branch is the same to the model; the other session does not change."""
    with opened(tmp_path) as log:
        whole_turn(log, "a")
        whole_turn(log, "b")
        before = segment(tmp_path).read_bytes()
        for at in targets(log.grammar):
            with fork(log.records, at, tmp_path, f"fork {at}") as other:
                assert project.messages(other.records) == project.messages(log.records, at)
                parent = other.records[0].data["parent"]
                assert (parent["session_id"], parent["seq"], parent["sum"]) == (NAME, at, log.records[at].sum)
            found = inspect(tmp_path, f"fork {at}")
            assert found.report == []
            assert [record.seq for record in found.records] == list(range(len(found.records)))
        assert segment(tmp_path).read_bytes() == before
        first, *_, last = targets(log.grammar)
        with fork(log.records, first, tmp_path, f"fork {first}") as other:  # of the same place: the same one
            assert project.messages(other.records) == project.messages(log.records, first)
        with pytest.raises(UsageError, match="holds a session already"):
            fork(log.records, last, tmp_path, f"fork {first}")


def test_a_fork_does_no_act_again(tmp_path: Path) -> None:
    """Neither does a branch: letters that were sent on another one are known by their keys."""
    world = World(FileOutside(tmp_path / "world"), make_inbox(body_bytes=SHORT_BODY_BYTES))
    opening = Opening(ask=asking(world, TOOLS))
    with open_log(tmp_path, NAME, opening) as log:
        assert LogAgent(log, FakeApi(), world).triage("go") == "completed"
        done = world.view()
        first = targets(log.grammar)[0]
        with fork(log.records, first, tmp_path, "fork", opening) as other:
            assert LogAgent(other, FakeApi(), world).turn("once more") == "completed"
        with fork(inspect(tmp_path, "fork").records, None, tmp_path, "fork of fork", opening) as third:
            assert LogAgent(third, FakeApi(), world).turn("and again") == "completed"
        branch(log, None)
        assert LogAgent(log, FakeApi(), world).turn("from the beginning") == "completed"
    assert world.view() == done
