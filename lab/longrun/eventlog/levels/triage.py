"""The reference agent's triage on a list of messages or a tree of entries: what lesson 7 kills beside the log.

Both keep what was said with care. So what they cannot do is no fault of theirs; it is what their lines do not say:
neither tells whether a call was begun. So a call without a result has one class, unknown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from longrun.eventlog.repair import UNKNOWN_TEXT
from longrun.loop import BLOCKED_TEXT, MAX_TOKENS, MODEL_NAME
from longrun.messages import blocks, canonical, sendable, tool_result, tool_uses
from longrun.tools import DEFINITIONS, TOOLS, act_key

if TYPE_CHECKING:
    from longrun.eventlog.levels.messages import MessageList
    from longrun.eventlog.levels.tree import EntryTree
    from longrun.messages import Block, Message
    from longrun.model import Model
    from longrun.world import World


def triage(store: MessageList | EntryTree, model: Model, world: World, task: str) -> list[str]:
    """Carry a task to its end, whatever was done of it before. Returns the acts that a person must decide about.

    A call without a result at the beginning has one class here, unknown: a reply is looked for in the world, a read
    is made again, and what can be neither looked for nor repeated is not done again.
    """
    asks: list[str] = []
    if not store.history():
        store.say(task)
    fresh = False
    while True:
        messages = store.messages()
        calls, answered = _open_calls(messages)
        for call in calls:
            if call["id"] not in answered:
                store.result(call, _answer(call, world, messages, asks, fresh=fresh))
        if not calls and messages[-1]["role"] == "assistant":
            return asks
        request = {"model": MODEL_NAME, "system": "", "tools": DEFINITIONS, "max_tokens": MAX_TOKENS}
        response = model.reply({**request, "messages": store.messages()})
        store.answer(sendable(response["content"]))
        fresh = True


def _open_calls(messages: list[Message]) -> tuple[list[Block], set[str]]:
    """The calls of the last answer, and the ids of those that have a result."""
    at = next((n for n in range(len(messages) - 1, -1, -1) if messages[n]["role"] == "assistant"), None)
    if at is None:
        return [], set()
    after = blocks(messages[at + 1]) if at + 1 < len(messages) else []
    return tool_uses(messages[at]), {block["tool_use_id"] for block in after if block["type"] == "tool_result"}


def _answer(call: Block, world: World, messages: list[Message], asks: list[str], *, fresh: bool) -> Block:
    """The result of a call; ``fresh`` says that this process has just been given it."""
    tool, given = TOOLS[call["name"]], call["input"]
    known = tool.find(world, given) if tool.find is not None else None
    if known is not None:
        return tool_result(call["id"], known)
    key = act_key("run", tool, {"input": given})
    if tool.nature == "non-idempotent" and tool.find is None and (not fresh or _is_unknown(call, messages)):
        if not fresh:
            asks.append(call["name"])
        return tool_result(call["id"], BLOCKED_TEXT if fresh else UNKNOWN_TEXT, is_error=True)
    return tool_result(call["id"], tool.run(world, given, key or ""))


def _is_unknown(call: Block, messages: list[Message]) -> bool:
    """Whether the same act was answered with "unknown" before."""
    same = {each["id"] for message in messages for each in tool_uses(message) if _names(each) == _names(call)}
    results = [block for message in messages for block in blocks(message) if block["type"] == "tool_result"]
    return any(block["tool_use_id"] in same and UNKNOWN_TEXT in canonical(block["content"]) for block in results)


def _names(call: Block) -> tuple[str, str]:
    return call["name"], call["input"].get("ticket", "")
