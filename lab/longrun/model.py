"""The model as the loop sees it, and what makes an answer complete.

A stream that ends early is not always an error: a proxy may end it cleanly, and half an input may
still parse. So nothing is used before :func:`require_complete` has passed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from longrun.errors import IncompleteResponse

if TYPE_CHECKING:
    from longrun.messages import Message

STOP_REASONS = (
    "end_turn",
    "stop_sequence",
    "tool_use",
    "pause_turn",
    "max_tokens",
    "refusal",
    "model_context_window_exceeded",
)


class Model(Protocol):
    """Something that answers requests of the Messages API: the fake server itself, or a client."""

    def reply(self, request: dict[str, Any]) -> dict[str, Any]:
        """The whole answer, as the API's message object. Raises ApiError or IncompleteResponse."""


def require_complete(response: dict[str, Any]) -> Message:
    """The assistant message of a complete answer. Raises IncompleteResponse."""
    reason, content = response.get("stop_reason"), response.get("content")
    if reason not in STOP_REASONS:
        text = f"the answer has the stop reason {reason!r}: it was cut, or is of a newer API"
        raise IncompleteResponse(text)
    calls = [block for block in content or () if block.get("type") == "tool_use"]
    if not content or bool(calls) != (reason == "tool_use"):
        text = f"the answer has {len(calls)} calls and stop reason {reason!r}"
        raise IncompleteResponse(text)
    if not all(isinstance(call.get("input"), dict) for call in calls):
        text = "the input of a call is no JSON object"
        raise IncompleteResponse(text)
    return {"role": "assistant", "content": content}
