"""The model as the loop sees it, and what makes an answer complete.

A stream that ends early is not always an error: a proxy may end it cleanly, and half an input may
still parse. So nothing is used before :func:`require_complete` has passed.
"""

from __future__ import annotations

from typing import Any, Protocol

from longrun.errors import IncompleteResponse

LIVE_MODEL = "claude-haiku-4-5"
"""The model that is asked for real: small, and it answers without blocks that a transcript here cannot hold."""
KEY_NAME = "ANTHROPIC_API_KEY"
"""The variable with the key for it."""
STOP_REASONS = (
    "end_turn",
    "stop_sequence",
    "tool_use",
    "pause_turn",
    "max_tokens",
    "refusal",
    "model_context_window_exceeded",
)
CUT_SHORT = ("max_tokens", "refusal", "model_context_window_exceeded")
"""Reasons that end the run: the model was stopped, it did not come to its end."""
SAID_TYPES = ("text", "tool_use", "server_tool_use")
"""Blocks that an answer may have, and that a transcript can hold."""


class Model(Protocol):
    """Something that answers requests of the Messages API: the fake server itself, or a client."""

    def reply(self, request: dict[str, Any]) -> dict[str, Any]:
        """The answer, as the API's message object. Raises ApiError, and IncompleteResponse for a broken line.

        Whether it is whole is for the caller to see: :func:`require_complete`.
        """


def require_complete(response: dict[str, Any]) -> dict[str, Any]:
    """A complete answer, as it is. Raises IncompleteResponse for any other.

    Only a tool call and a pause need something to go on with; any other answer may say nothing at all. One
    that was stopped on its way (``max_tokens``, ``refusal``) may hold whole calls: they are kept, never run.
    """
    reason, content = response.get("stop_reason"), response.get("content")
    if reason not in STOP_REASONS:
        text = f"the answer has the stop reason {reason!r}: it was cut, or is of a newer API"
        raise IncompleteResponse(text)
    if not isinstance(content, list):
        text = "the answer has no content"
        raise IncompleteResponse(text)
    odd = [block.get("type") for block in content if block.get("type") not in SAID_TYPES]
    if odd:
        text = f"the answer has a block of type {odd[0]!r}, which this program cannot keep"
        raise IncompleteResponse(text)
    calls = [block for block in content if block["type"] == "tool_use"]
    if bool(calls) != (reason == "tool_use") and not (calls and reason in CUT_SHORT):
        text = f"the answer has {len(calls)} calls and stop reason {reason!r}"
        raise IncompleteResponse(text)
    if not content and reason == "pause_turn":
        text = "the answer is a pause that says nothing: the same request would be sent again"
        raise IncompleteResponse(text)
    if not all(isinstance(call.get("input"), dict) for call in calls):
        text = "the input of a call is no JSON object"
        raise IncompleteResponse(text)
    return response
