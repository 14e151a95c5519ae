"""An answer that was cut while it streamed in: what of it may be acted on.

A gateway writes every event to a spool as it arrives; who dies in between finds a cut answer there. It
holds a call whose second half says how much is to be paid back. The lab kills between any two events.
Every function that is wrong says so, and where it was met.
"""

from __future__ import annotations

import json
import re
from functools import partial
from typing import TYPE_CHECKING, Any

from crashlab import Subject
from longrun.stream import events_of
from tests.casebook.durable import append_lines, read_json, read_lines, replace_json
from tests.casebook.scenario import Scenario, scenario

if TYPE_CHECKING:
    from collections.abc import Callable

    from crashlab import Lab

    Events = list[dict[str, Any]]

CALL = {"type": "tool_use", "id": "c1", "name": "pay_back", "input": {"note": "charged twice", "yen": 1000}}
USAGE = {"input_tokens": 9, "output_tokens": 9}
WHOLE = list(events_of({"content": [CALL], "stop_reason": "tool_use", "stop_sequence": None, "usage": USAGE}))
USUAL_YEN = 10


def stop_too_soon() -> Events:
    """The same events, but the stop overtakes the second half of the input and the end of its block."""
    last_piece = max(at for at, event in enumerate(WHOLE) if event["type"] == "content_block_delta")
    return [*WHOLE[:last_piece], *WHOLE[-2:], *WHOLE[last_piece:-2]]


def pieces(events: Events) -> str:
    """The text of the input, as far as it came."""
    return "".join(each["delta"]["partial_json"] for each in events if each["type"] == "content_block_delta")


def came(events: Events, kind: str) -> bool:
    """Whether an event of this kind is among them."""
    return any(event["type"] == kind for event in events)


def take_strict(events: Events) -> dict[str, Any] | None:
    """Right: the block ended, the message ended, and the input is JSON without help; else there is no call."""
    if not (came(events, "content_block_stop") and came(events, "message_stop")):
        return None
    try:
        value = json.loads(pieces(events))
    except ValueError:
        return None
    return value if value.keys() == {"note", "yen"} else None


def take_defaults(events: Events) -> dict[str, Any] | None:
    """Wrong: reads the keys that are there, and gives the others their usual values.

    https://github.com/langchain-ai/langchain/issues/39275
    """
    note = re.search(r'"note":"([^"]*)"', pieces(events))
    yen = re.search(r'"yen":(\d+)}', pieces(events))
    return {"note": note[1], "yen": int(yen[1]) if yen else USUAL_YEN} if note else None


def take_repaired(events: Events) -> dict[str, Any] | None:
    """Wrong: adds the bracket that is missing, and acts; https://github.com/cline/cline/issues/13001."""
    text = pieces(events).rstrip(",")
    if not text:
        return None
    return {"yen": USUAL_YEN} | json.loads(text if text.endswith("}") else text + "}")


def take_at_stop(events: Events) -> dict[str, Any] | None:
    """Wrong: the stop of the message is enough, whatever of the input has come.

    https://github.com/anthropics/claude-code/issues/19143
    """
    return take_repaired(events) if came(events, "message_stop") else None


def answer(lab: Lab, events: Events, take: Callable[[Events], dict[str, Any] | None]) -> str:
    """Let the answer stream in, take the call, do it once; go on from whatever is there."""
    spool, call = lab.dir / "stream.jsonl", lab.dir / "call.json"
    if read_json(call) is None:
        found = take(read_lines(spool))
        if found is None:
            spool.unlink(missing_ok=True)
            for event in events:
                append_lines(spool, [event])
            found = take_strict(read_lines(spool))
        replace_json(call, found)
    lab.effect("pay_back", key="c1", **read_json(call))
    return "paid back"


def described(take: Callable[[Events], dict[str, Any] | None], events: Events) -> Subject:
    """The gateway and its reader."""
    return Subject(partial(answer, events=events, take=take))


RIGHT = described(take_strict, WHOLE)

SCENARIOS: dict[str, Scenario] = {
    "missing keys at their defaults": scenario(described(take_defaults, WHOLE), RIGHT, "kill", "duplicate-effect"),
    "half an input repaired": scenario(described(take_repaired, WHOLE), RIGHT, "kill", "duplicate-effect"),
    "a stop before its input": scenario(
        described(take_at_stop, stop_too_soon()),
        described(take_strict, stop_too_soon()),
        "kill",
        "duplicate-effect",
    ),
}
