"""What can be made to go otherwise at the fake server: one set of knobs for one turn, harmless by default.

A turn is named by its number, counted from 1: one more than the assistant messages that the request
brings along. So a knob hangs on the transcript, as every reply does, and a process that resumes finds
its next turn. ``times`` alone counts: an answer that is cut every time would never be had.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from longrun.errors import UsageError
from longrun.model import STOP_REASONS

if TYPE_CHECKING:
    from collections.abc import Callable

    from longrun.messages import Block
    from longrun.stream import Cut

SAYS_NOTHING = "refusal"
"""The stop reason with which no content comes at all: a loop must not append an empty message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Knobs:
    """How the answers of one turn differ.

    * ``cut``: where the stream ends too early, cleanly or not.
    * ``delay_s``: seconds until the answer begins.
    * ``stop_reason``: any of the seven; all but ``tool_use`` take the calls away.
    * ``poison``: the first call is one to :data:`longrun.tools.POISON`, which kills the process that runs it.
    * ``times``: for so many requests of that turn; None for all of them.

    Raises UsageError for an unknown stop reason and a negative delay.
    """

    cut: Cut | None = None
    delay_s: float = 0.0
    stop_reason: str | None = None
    poison: bool = False
    times: int | None = 1

    def __post_init__(self) -> None:
        if self.stop_reason is not None and self.stop_reason not in STOP_REASONS:
            text = f"there is no stop reason {self.stop_reason!r}; choose of {', '.join(STOP_REASONS)}"
            raise UsageError(text)
        if self.delay_s < 0:
            text = f"a delay of {self.delay_s} s lies in the past"
            raise UsageError(text)


HARMLESS = Knobs()


def stopped_with(
    reason: str | None, content: list[Block], new_id: Callable[[str], str]
) -> tuple[list[Block], dict[str, Any]]:
    """The content as it is when the answer stops for ``reason``, and the two fields that say so."""
    natural = "tool_use" if any(block["type"] == "tool_use" for block in content) else "end_turn"
    if reason is None or reason == natural:
        return content, {"stop_reason": natural, "stop_sequence": None}
    texts = [block for block in content if block["type"] == "text"]
    if reason == SAYS_NOTHING:
        texts = []
    elif reason == "pause_turn":
        texts.append({"type": "server_tool_use", "id": new_id("srvtoolu"), "name": "web_search", "input": {}})
    elif reason == "tool_use":
        texts.append({"type": "tool_use", "id": new_id("toolu"), "name": "list_tickets", "input": {}})
    return texts, {"stop_reason": reason, "stop_sequence": "END" if reason == "stop_sequence" else None}
