"""A model that says what a test tells it to, for answers that the fake server gives only with its knobs, or never."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from longrun.protocol import NO_USAGE

USAGE = {**NO_USAGE, "input_tokens": 5, "output_tokens": 2}
TEXT = {"type": "text", "text": "well"}
REPLY = {"ticket": "T-101", "text": "soon", "refund_yen": 0}


@dataclass
class Script:
    """A model that says what it is told to, for answers that the fake server never gives."""

    answers: list[Any]
    requests: list[Any] = field(default_factory=list)

    def reply(self, request: dict[str, Any]) -> dict[str, Any]:
        self.requests.append(request)
        return {"usage": USAGE, **self.answers.pop(0)}


def says(reason: str | None, *content: Any) -> dict[str, Any]:
    return {"stop_reason": reason, "content": list(content or [TEXT])}


def call(name: str, given: dict[str, Any], identity: str = "toolu_1") -> dict[str, Any]:
    return {"type": "tool_use", "id": identity, "name": name, "input": given}


DONE = says("end_turn")
