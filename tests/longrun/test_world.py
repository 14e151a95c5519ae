"""Tests of longrun.world: the record of what was done outside, in a file and in the lab."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from crashlab.lab import Lab
from longrun.errors import InvalidInput
from longrun.inbox import make_inbox
from longrun.world import FileOutside, World

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(params=["file", "lab"])
def outside(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """Both records that a world may have."""
    return FileOutside(tmp_path / "world.jsonl") if request.param == "file" else Lab(tmp_path, lambda *_, **__: None)


@pytest.fixture
def world(outside: Any) -> World:
    return World(outside, make_inbox())


def test_an_overwrite_with_the_same_value_is_nothing_new(world: World) -> None:
    """The same label or report again does not count; another one does, and the last one stands."""
    for label in ("spam", "spam", "outage", "spam"):
        world.set_label(ticket="T-101", label=label)
    for text in ("one", "one", "two"):
        world.write_report(text=text)
    counted = [each.name for each in world.outside.records() if each.counted]
    assert counted == ["set_label", "set_label", "write_report", "write_report"]
    assert world.view()["labels"] == {"T-101": "spam"}
    assert world.view()["report"] == "two"


def test_a_case_is_opened_once_per_key(world: World) -> None:
    """The second call with a key returns the first case; another key opens another."""
    first = world.open_case(key="run/T-101", ticket="T-101", title="x")
    assert world.open_case(key="run/T-101", ticket="T-101", title="x") == first
    assert world.open_case(key="other", ticket="T-101", title="x") != first
    assert world.view()["cases"] == ["T-101", "T-101"]


def test_a_key_with_other_details_is_an_error(world: World) -> None:
    """A real service refuses a key that is used for something else."""
    world.open_case(key="k", ticket="T-101", title="x")
    with pytest.raises(ValueError, match="was done with"):
        world.open_case(key="k", ticket="T-102", title="x")
    assert len([each for each in world.outside.records() if each.counted]) == 1


def test_replies_and_pages_repeat(world: World) -> None:
    """Every reply and every page is one more; replies can be looked up."""
    for _ in range(2):
        world.send_reply(ticket="T-102", text="sorry", refund_yen=1000)
        world.page_oncall(ticket="T-101", summary="down")
    assert world.view()["replies"] == [["T-102", 1000], ["T-102", 1000]]
    assert world.view()["pages"] == ["T-101", "T-101"]
    assert len(world.find_replies("T-102")) == 2
    assert world.find_replies("T-101") == []


def test_a_ticket_that_does_not_exist_is_told(world: World) -> None:
    """Reading an unknown ticket names it and says where to look."""
    with pytest.raises(InvalidInput, match="'T-999'; list_tickets shows"):
        world.read_ticket("T-999")


def test_no_detail_carries_an_id_of_the_run(world: World) -> None:
    """The key of a case names the run, its details do not: two runs do the same to the world."""
    world.open_case(key="run-1234/T-101/open_case", ticket="T-101", title="x")
    assert "run-1234" not in repr(world.outside.records()[-1].detail)


def test_the_file_outlives_its_process(tmp_path: Path) -> None:
    """Another reader of the file finds the same effects, knows their keys, and numbers receipts on."""
    path = tmp_path / "world.jsonl"
    first = FileOutside(path)
    receipt = first.effect("open_case", key="k", ticket="T-101")
    second = FileOutside(path)
    assert second.effects == first.effects
    assert second.effect("open_case", key="k", ticket="T-101") == receipt
    assert second.effect("page_oncall", ticket="T-101") == "page_oncall-2"


def test_half_a_line_is_an_effect_that_never_was(tmp_path: Path) -> None:
    """A file cut anywhere in its last line is read without it, and goes on whole."""
    path = tmp_path / "world.jsonl"
    FileOutside(path).effect("page_oncall", ticket="T-101")
    kept = path.read_bytes()
    FileOutside(path).effect("page_oncall", ticket="T-102")
    whole = path.read_bytes()
    for size in range(len(kept), len(whole)):
        path.write_bytes(whole[:size])
        assert len(FileOutside(path).effects) == 1
        assert FileOutside(path).effect("page_oncall", ticket="T-103") == "page_oncall-2"
        assert [each.detail["ticket"] for each in FileOutside(path).effects] == ["T-101", "T-103"]
