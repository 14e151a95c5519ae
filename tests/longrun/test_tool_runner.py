"""The client's own tool runner, sync and async, against the fake server: it triages the inbox by itself.

Newer runners ask first whether the server keeps the conversation for them; ours does not, and they go on without.
"""

from __future__ import annotations

import asyncio
from typing import Any

import anthropic
import pytest
from anthropic import beta_async_tool, beta_tool

from longrun.fake_api import THREAD_TEXT, FakeApi
from longrun.fake_http import serve
from longrun.inbox import make_inbox
from longrun.messages import user
from longrun.tools import TOOLS
from longrun.world import FileOutside, World

ASKED: dict[str, Any] = {"model": "m", "max_tokens": 99, "messages": [user("go")]}


def answered(api: FakeApi) -> tuple[set[str], int]:
    """What was refused, apart from the question for a thread, and how many requests were answered."""
    return set(api.refusals) - {THREAD_TEXT}, sum(each.status == 200 for each in api.exchanges)


def runnable(world: World, *, as_async: bool) -> list[Any]:
    """Our tools as the runner takes them."""
    made = []
    for tool in TOOLS.values():

        def run(_tool: Any = tool, **given: Any) -> str:
            return str(_tool.run(world, given, "run-1/act"))

        async def run_async(_tool: Any = tool, **given: Any) -> str:
            return str(_tool.run(world, given, "run-1/act"))

        definition = tool.definition()
        more = {name: definition[name] for name in ("name", "description", "input_schema")}
        made.append(beta_async_tool(run_async, **more) if as_async else beta_tool(run, **more))
    return made


@pytest.fixture
def world(tmp_path: Any) -> World:
    return World(FileOutside(tmp_path / "world.jsonl"), make_inbox())


def test_the_tool_runner_comes_to_the_end(world: World) -> None:
    """Its seven requests keep every rule of the server, and the world is as after our own loop."""
    api = FakeApi()
    with serve(api) as base_url, anthropic.Anthropic(base_url=base_url, api_key="x", max_retries=0) as client:
        last = client.beta.messages.tool_runner(tools=runnable(world, as_async=False), **ASKED).until_done()
    assert last.stop_reason == "end_turn"
    assert answered(api) == (set(), 7)
    assert world.view()["replies"] == [["T-101", 0], ["T-102", 1000]]


def test_the_streaming_tool_runner_comes_to_the_end(world: World) -> None:
    """The same by events."""
    api = FakeApi()
    with serve(api) as base_url, anthropic.Anthropic(base_url=base_url, api_key="x", max_retries=0) as client:
        runner = client.beta.messages.tool_runner(tools=runnable(world, as_async=False), stream=True, **ASKED)
        reasons = [stream.get_final_message().stop_reason for stream in runner]
    assert reasons == ["tool_use"] * 6 + ["end_turn"]
    assert answered(api) == (set(), 7)


def test_the_async_tool_runner_comes_to_the_end(world: World) -> None:
    """And by the asynchronous client."""
    api = FakeApi()

    async def run(base_url: str) -> Any:
        async with anthropic.AsyncAnthropic(base_url=base_url, api_key="x", max_retries=0) as client:
            return await client.beta.messages.tool_runner(tools=runnable(world, as_async=True), **ASKED).until_done()

    with serve(api) as base_url:
        last = asyncio.run(run(base_url))
    assert last.stop_reason == "end_turn"
    assert answered(api) == (set(), 7)
    assert world.view()["pages"] == ["T-101"]
