"""The model behind the real ``anthropic`` client: the same loop, over the network.

The only module that imports the client. It never retries by itself: a request that is sent again is
to be counted again, and that is the loop's business. It reads the raw events: what the client's own
convenience makes of a line that was closed too early looks like an answer (measured with anthropic 2.14:
no error, the stop reason None, of the input what could be read).
"""

from __future__ import annotations

import contextlib
import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import anthropic

from longrun.errors import ApiError, IncompleteResponse
from longrun.stream import assemble

if TYPE_CHECKING:
    from collections.abc import Iterator

_LINES = importlib.import_module(anthropic.DefaultHttpxClient.__mro__[1].__module__.partition(".")[0])
"""The HTTP library below this client, httpx or httpx2: it raises its own errors where a line breaks in a stream."""
_BROKEN: tuple[type[Exception], ...] = (anthropic.APIConnectionError, _LINES.TransportError)


DEFAULT_TIMEOUT_S = 600.0
"""How long the client waits for the next bytes of an answer, as its documentation says (2026)."""


@dataclass(frozen=True)
class ClientModel:
    """Answers through ``client``, by streaming unless told otherwise."""

    client: anthropic.Anthropic
    streaming: bool = True

    @staticmethod
    def at(base_url: str, *, api_key: str = "not-needed", streaming: bool = True) -> ClientModel:
        """A model on the server at ``base_url``, without retries."""
        return ClientModel(anthropic.Anthropic(base_url=base_url, api_key=api_key, max_retries=0), streaming)

    @staticmethod
    @contextlib.contextmanager
    def live(api_key: str, *, timeout_s: float = DEFAULT_TIMEOUT_S) -> Iterator[ClientModel]:
        """A model of the real service, for the length of a ``with`` block."""
        with anthropic.Anthropic(api_key=api_key, max_retries=0, timeout=timeout_s) as client:
            yield ClientModel(client)

    def reply(self, request: dict[str, Any]) -> dict[str, Any]:
        """The whole answer. Raises ApiError for an error of the server, IncompleteResponse for a cut one."""
        try:
            if not self.streaming:
                message: anthropic.types.Message = self.client.messages.create(**request)
                return message.to_dict()
            with self.client.messages.create(**request, stream=True) as stream:
                return assemble(event.to_dict() for event in stream)
        except anthropic.APIStatusError as error:
            raise _as_api_error(error) from error
        except _BROKEN as error:
            text = f"the line broke before the whole answer came: {error}"
            raise IncompleteResponse(text) from error


def _as_api_error(error: anthropic.APIStatusError) -> ApiError:
    body = error.body if isinstance(error.body, dict) else {}
    inner = body.get("error", {})
    return ApiError(error.status_code, str(inner.get("type", "api_error")), str(inner.get("message", error.message)))
