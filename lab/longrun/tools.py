"""The agent's tools: what each takes, what it does to the world, and whether it may be repeated.

``nature`` is the fact on which every resume turns. ``find`` is the look-up of a non-idempotent tool
where there is one: it tells afterwards whether the act was done.
"""

from __future__ import annotations

import hashlib
import os
import signal
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from longrun.errors import InvalidInput
from longrun.messages import canonical

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from longrun.world import World

Nature = Literal["read-only", "idempotent", "non-idempotent"]
Input = dict[str, Any]

_JSON_TYPES = {str: "string", int: "integer"}


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool. ``run(world, input, key)`` does it and returns the text of the result.

    ``find(world, input)`` returns the text of the result of an act that was done before, or None.
    """

    name: str
    description: str
    nature: Nature
    fields: Mapping[str, type]
    run: Callable[[World, Input, str], str]
    find: Callable[[World, Input], str | None] | None = None

    def definition(self) -> dict[str, Any]:
        """The tool as the Messages API wants it."""
        properties = {name: {"type": _JSON_TYPES[kind]} for name, kind in self.fields.items()}
        schema = {"type": "object", "properties": properties, "required": list(self.fields)}
        return {"name": self.name, "description": self.description, "input_schema": schema}

    def check(self, world: World, call_input: Input) -> None:
        """Raise InvalidInput unless the input fits, before anything is done."""
        if call_input.keys() != self.fields.keys():
            text = f"{self.name} takes {sorted(self.fields)}, got {sorted(call_input)}"
            raise InvalidInput(text)
        for name, kind in self.fields.items():
            if type(call_input[name]) is not kind:
                text = f"{self.name}: {name} must be {kind.__name__}, got {call_input[name]!r}"
                raise InvalidInput(text)
        if "ticket" in self.fields:
            world.find(call_input["ticket"])


def act_key(run_id: str, tool: Tool, call: Mapping[str, Any]) -> str | None:
    """The name of the act that ``call`` names, the same whoever names it again: run, ticket, act. None for a read.

    Of the call only its input counts. Its id and its time are others at every request, and so are words.
    """
    if tool.nature == "read-only":
        return None
    return f"{run_id}/{call['input'].get('ticket', 'inbox')}/{tool.name}"


def args_digest(call_input: Input) -> str:
    """Tells two inputs of one act apart."""
    return hashlib.sha256(canonical(call_input).encode()).hexdigest()


# --- the eight tools ------------------------------------------------------------------------------


def _replies(world: World, call_input: Input) -> str:
    found = world.find_replies(call_input["ticket"])
    lines = [f"refund {each['refund_yen']} yen: {each['text']}" for each in found]
    return "\n".join([f"{len(found)} replies", *lines])


def _find_reply(world: World, call_input: Input) -> str | None:
    found = world.find_replies(call_input.get("ticket", ""))
    return "reply sent (found by look-up)" if call_input in found else None


TOOLS: dict[str, Tool] = {
    tool.name: tool
    for tool in (
        Tool(
            "list_tickets",
            "List the open tickets.",
            "read-only",
            {},
            lambda world, _input, _key: world.list_tickets(),
        ),
        Tool(
            "read_ticket",
            "Read one ticket whole.",
            "read-only",
            {"ticket": str},
            lambda world, given, _key: world.read_ticket(given["ticket"]),
        ),
        Tool(
            "find_replies",
            "Show the replies that were sent for a ticket.",
            "read-only",
            {"ticket": str},
            lambda world, given, _key: _replies(world, given),
        ),
        Tool(
            "set_label",
            "Set the label of a ticket; overwrites.",
            "idempotent",
            {"ticket": str, "label": str},
            lambda world, given, _key: f"label set: {world.set_label(**given)}",
        ),
        Tool(
            "write_report",
            "Write the report of the day; overwrites.",
            "idempotent",
            {"text": str},
            lambda world, given, _key: f"report written: {world.write_report(**given)}",
        ),
        Tool(
            "open_case",
            "Open a case for the engineers.",
            "idempotent",
            {"ticket": str, "title": str},
            lambda world, given, key: f"case opened: {world.open_case(key=key, **given)}",
        ),
        Tool(
            "send_reply",
            "Send a reply to the customer and pay a refund.",
            "non-idempotent",
            {"ticket": str, "text": str, "refund_yen": int},
            lambda world, given, _key: f"reply sent: {world.send_reply(**given)}",
            find=_find_reply,
        ),
        Tool(
            "page_oncall",
            "Page the engineer on call.",
            "non-idempotent",
            {"ticket": str, "summary": str},
            lambda world, given, _key: f"paged: {world.page_oncall(**given)}",
        ),
    )
}

DEFINITIONS: list[dict[str, Any]] = [tool.definition() for tool in TOOLS.values()]
"""All tools, as a request to the Messages API carries them."""


def _kill_process(_world: World, _input: Input, _key: str) -> str:
    os.kill(os.getpid(), signal.SIGKILL)
    text = "this process should be dead"
    raise AssertionError(text)


POISON = Tool(
    "open_attachment",
    "Open an attachment.",
    "read-only",
    {"name": str},
    _kill_process,
)
"""A read that kills the process that makes it, as one does that takes all memory. No agent has it unasked."""
