"""A list of messages and a tree of entries: they keep what was said, through any cut, and branch each at its price."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from longrun.eventlog.simpler import UNKNOWN_TEXT, EntryTree, MessageList, joined, triage
from longrun.fake_api import FakeApi
from longrun.inbox import SHORT_BODY_BYTES, make_inbox
from longrun.loop import TASK
from longrun.messages import check_messages, tool_result, user
from longrun.world import FileOutside, World

if TYPE_CHECKING:
    from pathlib import Path

LEVELS = (MessageList, EntryTree)
ONCE = {"replies": [["T-101", 0], ["T-102", 1000]], "pages": ["T-101"], "cases": ["T-101"]}


def worked(level: type[MessageList], folder: Path, *, world: str = "world") -> tuple[MessageList, World, list[str]]:
    """A triage to its end, from what lies in the folder."""
    store, there = (
        level(folder / "session"),
        World(FileOutside(folder / world), make_inbox(body_bytes=SHORT_BODY_BYTES)),
    )
    return store, there, triage(store, FakeApi("hasty"), there, TASK)


@pytest.mark.parametrize("level", LEVELS)
def test_a_whole_triage_is_kept_and_not_done_again(level: type[MessageList], tmp_path: Path) -> None:
    """The second process finds it done, and the server would take what is kept."""
    store, world, asks = worked(level, tmp_path)
    lines = store.lines
    check_messages(store.messages(), may_end_with_assistant=True)
    store.close()
    again, _, _ = worked(level, tmp_path)
    again.close()
    assert again.lines == lines
    assert asks == []
    assert ONCE.items() <= world.view().items()


@pytest.mark.parametrize("level", LEVELS)
def test_wherever_it_is_cut_off_no_act_is_doubled(level: type[MessageList], tmp_path: Path) -> None:
    """Behind each line, and within it: the page is done at most once, or a person is asked."""
    store, _, _ = worked(level, tmp_path)
    store.close()
    data, done = (tmp_path / "session").read_bytes(), (tmp_path / "world").read_bytes()
    ends = [at + 1 for at, byte in enumerate(data) if byte == ord("\n")][:-1]
    asked = 0
    for end in ends:
        (tmp_path / "session").write_bytes(data[: end + 10])
        (tmp_path / "world").write_bytes(done)
        store, world, asks = worked(level, tmp_path)
        store.close()
        view = world.view()
        assert view["replies"] == ONCE["replies"]
        check_messages(store.messages(), may_end_with_assistant=True)
        asked += bool(asks)
        if end > data.index(b"page_oncall"):
            assert view["pages"] == ["T-101"]
    assert asked == 2  # behind the answer that names the page, and behind the result of the reply before it


@pytest.mark.parametrize("level", LEVELS)
def test_a_branch_goes_on_from_where_it_was_asked_to(level: type[MessageList], tmp_path: Path) -> None:
    """In a copy, or in one line of the same file; a restart finds it."""
    store = level(tmp_path / "session")
    for text in ("a", "b", "c"):
        store.append(user(text))
    before = (tmp_path / "session").stat().st_size
    written = store.branch(1, tmp_path / "copy")
    store.close()
    place = tmp_path / ("copy" if level is MessageList else "session")
    assert written == place.stat().st_size - (0 if level is MessageList else before)
    branched = level(place)
    branched.append(user("d"))
    branched.close()
    assert level(place).messages() == joined([user("a"), user("d")])


def test_what_is_unknown_is_known_by_its_act() -> None:
    """Results and texts of one side are one message."""
    told = joined([{"role": "user", "content": [tool_result("1", UNKNOWN_TEXT)]}, user("go on")])
    assert [block["type"] for block in told[0]["content"]] == ["tool_result", "text"]
