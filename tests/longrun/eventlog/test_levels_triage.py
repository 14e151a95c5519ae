"""Tests of longrun.eventlog.levels.triage: what was said is kept through any cut, and a branch costs its price."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from longrun.eventlog.levels.messages import COPY, FIRST, MessageList
from longrun.eventlog.levels.tree import NAME, EntryTree
from longrun.eventlog.levels.triage import triage
from longrun.eventlog.levels.work import joined
from longrun.eventlog.repair import UNKNOWN_TEXT
from longrun.fake_api import FakeApi
from longrun.inbox import SHORT_BODY_BYTES, make_inbox
from longrun.loop import TASK
from longrun.messages import check_messages, tool_result, user
from longrun.world import FileOutside, World

if TYPE_CHECKING:
    from pathlib import Path

Store = MessageList | EntryTree
LEVELS = (MessageList, EntryTree)
FILES = {MessageList: FIRST, EntryTree: NAME}
ONCE = {"replies": [["T-101", 0], ["T-102", 1000]], "pages": ["T-101"], "cases": ["T-101"]}


def worked(level: type[Store], folder: Path) -> tuple[Store, World, list[str]]:
    """A triage to its end, from what lies in the folder."""
    (folder / "session").mkdir(exist_ok=True)
    store = level(folder / "session")
    world = World(FileOutside(folder / "world"), make_inbox(body_bytes=SHORT_BODY_BYTES))
    return store, world, triage(store, FakeApi("hasty"), world, TASK)


@pytest.mark.parametrize("level", LEVELS)
def test_a_whole_triage_is_kept_and_not_done_again(level: type[Store], tmp_path: Path) -> None:
    """The second process finds it done, and the server would take what is kept."""
    store, world, asks = worked(level, tmp_path)
    check_messages(store.messages(), may_end_with_assistant=True)
    again, _, _ = worked(level, tmp_path)
    assert again.history() == store.history()
    assert asks == []
    assert ONCE.items() <= world.view().items()


@pytest.mark.parametrize("level", LEVELS)
def test_wherever_it_is_cut_off_no_act_is_doubled(level: type[Store], tmp_path: Path) -> None:
    """Behind each line, and within it: the page is done at most once, or a person is asked."""
    worked(level, tmp_path)
    session = tmp_path / "session" / FILES[level]
    data, done = session.read_bytes(), (tmp_path / "world").read_bytes()
    ends = [at + 1 for at, byte in enumerate(data) if byte == ord("\n")][:-1]
    asked = 0
    for end in ends:
        session.write_bytes(data[: end + 10])
        (tmp_path / "world").write_bytes(done)
        store, world, asks = worked(level, tmp_path)
        view = world.view()
        assert view["replies"] == ONCE["replies"]
        check_messages(store.messages(), may_end_with_assistant=True)
        asked += bool(asks)
        if end > data.index(b"page_oncall"):
            assert view["pages"] == ["T-101"]
    assert asked == 2  # behind the answer that names the page, and behind the result of the reply before it


@pytest.mark.parametrize("level", LEVELS)
def test_a_branch_goes_on_from_where_it_was_asked_to(level: type[Store], tmp_path: Path) -> None:
    """In a copy, or by one line of the same file; a restart finds it."""
    store = level(tmp_path)
    for text in ("a", "b", "c"):
        store.say(text)
    before = (tmp_path / FILES[level]).read_bytes()
    store.branch(1)
    if level is MessageList:
        assert (tmp_path / COPY).read_bytes() == before.splitlines(keepends=True)[0]
        assert (tmp_path / FILES[level]).read_bytes() == before
    else:
        assert (tmp_path / FILES[level]).read_bytes() == before + b'{"leaf":0}\n'
    level(tmp_path).say("d")
    assert level(tmp_path).messages() == joined([user("a"), user("d")])
    if level is EntryTree:
        store = level(tmp_path)
        store.branch(0)
        assert store.messages() == []


def test_what_is_unknown_is_known_by_its_act() -> None:
    """Results and texts of one side are one message."""
    told = joined([{"role": "user", "content": [tool_result("1", UNKNOWN_TEXT)]}, user("go on")])
    assert [block["type"] for block in told[0]["content"]] == ["tool_result", "text"]
