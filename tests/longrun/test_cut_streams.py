"""A cut stream never becomes a tool call: over real HTTP, with the real client, sync and async, and in the loop."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import anthropic
import pytest

from longrun.checkpoint import correct
from longrun.client import ClientModel
from longrun.errors import IncompleteResponse
from longrun.fake_api import FakeApi
from longrun.fake_http import serve
from longrun.inbox import make_inbox
from longrun.knobs import Knobs
from longrun.messages import tool_result, tool_uses, user
from longrun.stream import Cut, cut_off, events_of, snapshot
from longrun.tools import DEFINITIONS, TOOLS
from longrun.world import FileOutside, World

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ASKED: dict[str, Any] = {"model": "m", "max_tokens": 9, "tools": DEFINITIONS, "messages": [user("go")]}
EVENTS = len(list(events_of(FakeApi().reply(ASKED))))
PLACES = [*range(EVENTS), "I look"]
TEN_OF_THOUSAND = Cut('"refund_yen":10')


def broken_line() -> type[Exception]:
    """What the client's HTTP library raises when a line breaks: no error of the client's own."""
    found = anthropic.DefaultHttpxClient.__mro__[1]
    return __import__(found.__module__.partition(".")[0]).RemoteProtocolError


@pytest.fixture
def desk_at_work(desk: Any) -> Iterator[Any]:
    yield desk
    assert desk.world.view()["replies"] == [["T-101", 0], ["T-102", 1000]]


@pytest.mark.parametrize("clean", [True, False])
def test_wherever_a_stream_is_cut_nothing_of_it_is_an_answer(clean: bool) -> None:
    """After any number of events, and inside a text: IncompleteResponse, and the next answer is whole."""
    for place in PLACES:
        api = FakeApi(knobs={1: Knobs(cut=Cut(place, clean=clean))})
        with serve(api) as base_url, ClientModel.at(base_url).client as client:
            with pytest.raises(IncompleteResponse):
                ClientModel(client).reply(ASKED)
            assert ClientModel(client).reply(ASKED)["stop_reason"] == "tool_use", place
        assert [each.cut for each in api.exchanges] == [True, False]


def test_a_cut_plain_answer_is_none_either() -> None:
    """Without a stream the length is announced: half a body is an error whoever closes the line."""
    for clean in (True, False):
        api = FakeApi(knobs={1: Knobs(cut=Cut(1, clean=clean))})
        with serve(api) as base_url, ClientModel.at(base_url).client as client, pytest.raises(IncompleteResponse):
            ClientModel(client, streaming=False).reply(ASKED)


@pytest.mark.parametrize("clean", [True, False])
def test_a_customer_is_promised_what_was_meant(desk_at_work: Any, clean: bool) -> None:
    """The stream ends behind 10 of 1000 yen: the run stops, nothing is sent, the resumed one promises 1000."""
    desk = desk_at_work
    api = FakeApi(knobs={5: Knobs(cut=Cut(TEN_OF_THOUSAND.after, clean=clean))})
    with serve(api) as base_url, ClientModel.at(base_url).client as client:
        with pytest.raises(IncompleteResponse):
            desk.agent(ClientModel(client)).start()
        stored = correct.load(desk.agent_directory)
        assert stored is not None
        assert (stored.turns, stored.pending_tool_use, desk.world.view()["replies"]) == (4, (), [])
        last = desk.agent(ClientModel(client)).resume()
    assert (last.status, last.requests_started, last.requests_saved) == ("done", 8, 7)
    assert last.requests_started == len(api.exchanges)
    assert sum(last.usage.values()) < sum(api.usage().values())  # what was cut is paid all the same


# --- what the client itself makes of it ------------------------------------------------------------


def fifth_turn(directory: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """The request in which replies are named, and a whole answer to it."""
    api, request = FakeApi(), dict(ASKED)
    world = World(FileOutside(directory / "world.jsonl"), make_inbox())
    while True:
        response = api.reply(request)
        said = {"role": "assistant", "content": response["content"]}
        if any(call["name"] == "send_reply" for call in tool_uses(said)):
            return request, response
        results = [
            tool_result(each["id"], TOOLS[each["name"]].run(world, each["input"], "k")) for each in tool_uses(said)
        ]
        request = {**request, "messages": [*request["messages"], said, {"role": "user", "content": results}]}


def test_the_client_s_own_convenience_shows_ten_yen(tmp_path: Path) -> None:
    """After a clean cut it raises nothing, and our snapshot tells the same: that is why neither is ever used."""
    request, whole = fifth_turn(tmp_path)
    api = FakeApi(knobs={5: Knobs(cut=TEN_OF_THOUSAND)})
    with (
        serve(api) as base_url,
        anthropic.Anthropic(base_url=base_url, api_key="x", max_retries=0) as client,
        client.messages.stream(**request) as stream,
    ):
        seen = stream.get_final_message()
    assert seen.stop_reason is None
    assert seen.content[-1].input["refund_yen"] == 10
    ours = snapshot(cut_off(events_of(whole), TEN_OF_THOUSAND))
    assert ours["stop_reason"] is None
    assert [block["input"] for block in ours["content"][1:]] == [block.input for block in seen.content[1:]]


def test_the_async_client_meets_the_same_server() -> None:
    """Whole, it sees the message; cleanly cut, half of it without an error; dirtily cut, a broken line."""
    knobs = {1: Knobs(cut=Cut(6))}

    async def ask(base_url: str, *, times: int) -> list[Any]:
        async with anthropic.AsyncAnthropic(base_url=base_url, api_key="x", max_retries=0) as client:
            seen = []
            for _ in range(times):
                async with client.messages.stream(**ASKED) as stream:
                    seen.append(await stream.get_final_message())
            return seen

    with serve(FakeApi(knobs=knobs)) as base_url:
        cut, whole = asyncio.run(ask(base_url, times=2))
    assert (cut.stop_reason, whole.stop_reason) == (None, "tool_use")
    assert whole.content[1].name == "list_tickets"
    with serve(FakeApi(knobs={1: Knobs(cut=Cut(6, clean=False))})) as base_url, pytest.raises(broken_line()):
        asyncio.run(ask(base_url, times=1))
