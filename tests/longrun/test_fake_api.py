"""Tests of longrun.fake_api: the strict server, in this process."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from longrun.errors import ApiError
from longrun.fake_api import FakeApi, random_id
from longrun.messages import normalised, tool_result, tool_uses, user
from longrun.tools import DEFINITIONS


def request(*messages: Any, **changes: Any) -> dict[str, Any]:
    return {"model": "m", "max_tokens": 9, "tools": DEFINITIONS, "messages": list(messages), **changes}


def answered(api: FakeApi, *messages: Any) -> list[Any]:
    response = api.reply(request(*messages))
    return [*messages, {"role": "assistant", "content": response["content"]}]


def refused(api: FakeApi, broken: dict[str, Any]) -> ApiError:
    with pytest.raises(ApiError) as caught:
        api.reply(broken)
    return caught.value


def test_a_refusal_has_the_shape_of_the_api() -> None:
    """A broken list gets status 400 and the API's error object, and the server remembers it."""
    api = FakeApi()
    transcript = answered(api, user("go"))
    error = refused(api, request(*transcript, user("and?")))
    assert error.status == 400
    assert error.body["type"] == "error"
    assert error.body["error"]["type"] == "invalid_request_error"
    assert "`tool_use` ids were found without `tool_result` blocks" in error.body["error"]["message"]
    assert [each.status for each in api.exchanges] == [200, 400]
    assert api.refusals == [error.body["error"]["message"]]


def test_calls_need_tools() -> None:
    """A transcript with calls is refused where no tools are defined; a plain one is not."""
    api = FakeApi()
    transcript = answered(api, user("go"))
    transcript.append({"role": "user", "content": [tool_result(tool_uses(transcript[-1])[0]["id"], "T-1 x")]})
    for without in (request(*transcript, tools=[]), {**request(*transcript), "tools": None}):
        assert "must define tools" in str(refused(api, without))
    assert api.reply(request(user("go"), tools=[]))["stop_reason"] == "tool_use"


@pytest.mark.parametrize("name", ["model", "max_tokens", "messages"])
def test_required_fields_are_required(name: str) -> None:
    """A request without a required field is refused by its name."""
    broken = request(user("go"))
    del broken[name]
    assert f"{name}: Field required" in str(refused(FakeApi(), broken))


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"tools": [*DEFINITIONS, DEFINITIONS[0]]}, "tools: Tool names must be unique"),
        ({"tools": [{"description": "x"}]}, "tools.0.custom.name: Field required"),
        ({"tools": "all"}, "tools: Input should be a valid list"),
        ({"max_tokens": 0}, "max_tokens: Input should be greater than or equal to 1"),
        ({"max_tokens": "9"}, "max_tokens: "),
        ({"messages": {}}, "messages: at least one message is required"),
    ],
)
def test_a_request_that_makes_no_sense_is_refused(changes: dict[str, Any], text: str) -> None:
    """Each by its field, and counted as refused."""
    api = FakeApi()
    assert text in str(refused(api, request(user("go"), **changes)))
    assert len(api.refusals) == 1


def test_it_keeps_no_conversation() -> None:
    """A request for a thread is refused with the code that tells a tool runner to go on without one."""
    error = refused(FakeApi(), request(user("go"), thread={"type": "create"}))
    assert error.body["error"]["details"]["error_code"] == "thread_unsupported_request"


def test_every_request_is_told_before_it_is_answered() -> None:
    """Whoever keeps a record that outlives this process counts there: also what is refused or cut."""
    told: list[int] = []
    api = FakeApi(asked=lambda: told.append(len(api.exchanges)))
    api.reply(request(user("go")))
    refused(api, request())
    assert told == [0, 1]


def test_a_reply_is_a_function_of_the_transcript_and_ids_are_fresh() -> None:
    """Asked the same again, even by another server, it says the same under new ids."""
    api, other = FakeApi(), FakeApi()
    first, again, elsewhere = (answered(each, user("go")) for each in (api, api, other))
    assert normalised(first) == normalised(again) == normalised(elsewhere)
    identities = {tool_uses(each[-1])[0]["id"] for each in (first, again, elsewhere)}
    assert len(identities) == 3


def test_ids_come_from_the_given_source_and_have_one_length() -> None:
    """Tests may name the ids; the random ones are as long as the API's."""
    numbers = itertools.count(1)
    api = FakeApi(new_id=lambda prefix: f"{prefix}_{next(numbers)}")
    assert tool_uses(answered(api, user("go"))[-1])[0]["id"] == "toolu_1"
    assert {len(random_id("toolu")) for _ in range(20)} == {len("toolu_") + 24}


def test_the_record_of_the_server_counts_what_it_sent() -> None:
    """Usage is summed over all replies, and grows with the transcript."""
    api = FakeApi()
    replies = [api.reply(request(user("go"))), api.reply(request(user("go " * 400)))]
    for name in ("input_tokens", "output_tokens"):
        assert api.usage()[name] == sum(each["usage"][name] for each in replies) > 0
    assert replies[1]["usage"]["input_tokens"] > replies[0]["usage"]["input_tokens"]
