"""Tests of longrun.fake_http with the real ``anthropic`` client: the same server, over the network."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any

import anthropic
import pytest

from longrun.fake_api import FakeApi
from longrun.fake_http import _Handler, _Server, serve
from longrun.messages import user
from longrun.tools import DEFINITIONS

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def served() -> Iterator[tuple[FakeApi, str]]:
    api = FakeApi()
    with serve(api) as base_url:
        yield api, base_url


def ask(base_url: str, *messages: Any, **options: Any) -> Any:
    with anthropic.Anthropic(base_url=base_url, api_key="x", max_retries=0) as client:
        answer = client.messages.create(model="m", max_tokens=9, tools=DEFINITIONS, messages=list(messages), **options)
        return list(answer) if options.get("stream") else answer


def test_the_real_client_sees_the_400_for_an_orphan_tool_use(served: tuple[FakeApi, str]) -> None:
    """A call without its result comes back to the real client as BadRequestError with the API's text."""
    api, base_url = served
    orphan = {"type": "tool_use", "id": "toolu_1", "name": "list_tickets", "input": {}}
    with pytest.raises(anthropic.BadRequestError) as caught:
        ask(base_url, user("go"), {"role": "assistant", "content": [orphan]}, user("and?"))
    assert caught.value.status_code == 400
    assert "messages.1: `tool_use` ids were found without `tool_result` blocks" in caught.value.message
    assert len(api.refusals) == 1


def test_streaming_and_plain_answers_say_the_same(served: tuple[FakeApi, str]) -> None:
    """The client's own parsing finds the same blocks, stop reason and usage either way."""
    api, base_url = served
    plain = ask(base_url, user("go"))
    with (
        anthropic.Anthropic(base_url=base_url, api_key="x") as client,
        client.messages.stream(model="m", max_tokens=9, tools=DEFINITIONS, messages=[user("go")]) as stream,
    ):
        streamed = stream.get_final_message()
    assert [block.type for block in streamed.content] == ["text", "tool_use"]
    assert streamed.content[0].text == plain.content[0].text
    assert (streamed.content[1].name, streamed.content[1].input) == ("list_tickets", {})
    assert (streamed.stop_reason, streamed.usage.output_tokens) == (plain.stop_reason, plain.usage.output_tokens)
    assert len(api.exchanges) == 2


def test_a_stream_has_the_events_of_the_api_in_order(served: tuple[FakeApi, str]) -> None:
    """Events arrive from message_start to message_stop."""
    kinds = [event.type for event in ask(served[1], user("go"), stream=True)]
    assert kinds[0] == "message_start"
    assert kinds[-2:] == ["message_delta", "message_stop"]
    assert kinds.count("content_block_start") == kinds.count("content_block_stop") == 2


@pytest.mark.parametrize(
    ("path", "body", "status"), [("/v1/else", b"{}", 404), ("/v1/messages", b"{", 400), ("/v1/messages", b"[]", 400)]
)
def test_other_requests_get_an_error_object(served: tuple[FakeApi, str], path: str, body: bytes, status: int) -> None:
    """An unknown path is 404, a body that is no request 400, both in the API's shape."""
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(served[1] + path, data=body)  # noqa: S310 - the address is our own server's
    with caught.value as error:
        assert error.code == status
        assert json.load(error)["type"] == "error"


@pytest.mark.parametrize(("error", "told"), [(ConnectionResetError(), False), (ValueError("odd"), True)])
def test_a_client_that_has_gone_is_no_error(error: Exception, told: bool, capsys: pytest.CaptureFixture[str]) -> None:
    """Clients are killed here all the time; whatever else goes wrong is told."""
    with _Server(("127.0.0.1", 0), _Handler) as server:
        try:
            raise error
        except type(error):
            server.handle_error(None, ("127.0.0.1", 1))
    assert ("Exception occurred" in capsys.readouterr().err) == told
