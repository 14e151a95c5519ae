"""The model behind the real ``anthropic`` client: the same loop, over the network.

The only module that imports the client. It never retries by itself: a request that is sent again is
to be counted again, and that is the loop's business.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import anthropic

from longrun.errors import ApiError
from longrun.stream import assemble


@dataclass(frozen=True)
class ClientModel:
    """Answers through ``client``, by streaming unless told otherwise."""

    client: anthropic.Anthropic
    streaming: bool = True

    @staticmethod
    def at(base_url: str, *, api_key: str = "not-needed", streaming: bool = True) -> ClientModel:
        """A model on the server at ``base_url``, without retries."""
        return ClientModel(anthropic.Anthropic(base_url=base_url, api_key=api_key, max_retries=0), streaming)

    def reply(self, request: dict[str, Any]) -> dict[str, Any]:
        """The whole answer. Raises ApiError for an error of the server, IncompleteResponse for a cut stream."""
        try:
            if not self.streaming:
                message: anthropic.types.Message = self.client.messages.create(**request)
                return message.to_dict()
            with self.client.messages.create(**request, stream=True) as stream:
                return assemble(event.to_dict() for event in stream)
        except anthropic.APIStatusError as error:
            raise _as_api_error(error) from error


def _as_api_error(error: anthropic.APIStatusError) -> ApiError:
    body = error.body if isinstance(error.body, dict) else {}
    inner = body.get("error", {})
    return ApiError(error.status_code, str(inner.get("type", "api_error")), str(inner.get("message", error.message)))
