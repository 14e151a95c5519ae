"""Tests of longrun.client: the loop through the real ``anthropic`` client."""

from __future__ import annotations

from typing import Any

import pytest

from longrun.client import ClientModel
from longrun.errors import ApiError
from longrun.fake_api import FakeApi
from longrun.fake_http import serve
from longrun.messages import normalised, user


@pytest.mark.parametrize("streaming", [True, False])
def test_http_and_in_process_give_the_same_transcript(desk: Any, tmp_path: Any, streaming: bool) -> None:
    """The whole run over HTTP equals the run in this process, but for ids; and so does what it cost."""
    near = desk.agent().start()
    far_desk = type(desk)(tmp_path / "far")
    far_desk.agent_directory.mkdir(parents=True)
    api = FakeApi()
    with serve(api) as base_url, ClientModel.at(base_url, streaming=streaming).client as client:
        far = far_desk.agent(ClientModel(client, streaming)).start()
    assert normalised(far.messages) == normalised(near.messages)
    assert far.usage == near.usage == api.usage()
    assert far_desk.world.view() == desk.world.view()


@pytest.mark.parametrize("streaming", [True, False])
def test_an_error_of_the_server_is_an_api_error(streaming: bool) -> None:
    """The client's own exception becomes the one that the loop knows from the server in this process."""
    with serve(FakeApi()) as base_url, ClientModel.at(base_url).client as client:
        broken = {"model": "m", "max_tokens": 9, "messages": [user("")]}
        with pytest.raises(ApiError) as caught:
            ClientModel(client, streaming).reply(broken)
    assert caught.value.status == 400
    assert "text content blocks must be non-empty" in str(caught.value)
    assert caught.value.body["error"]["type"] == "invalid_request_error"
