"""Two simpler ways to keep a session, for a look beside the log: a list of messages, and a tree of entries.

Both are written as carefully as the log: a line is synced before anything relies on it, and half a line at the end is
cut off. So what they cannot do is not a fault of theirs; it is what their lines do not say.

* ``MessageList``: a line is a message, or one result of a call. What comes next follows the last line.
* ``EntryTree``: a line is the same with an id and a parent, and the leaf is the last line. A branch costs one line.

Neither says whether a call was begun. Neither keeps the request, so what the model was shown cannot be made again once
the program has changed. For a chat that matters little; for an agent that pays, see ``agent``.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from longrun.files import sync_directory, write_all
from longrun.loop import BLOCKED_TEXT, MAX_TOKENS, MODEL_NAME
from longrun.messages import blocks, canonical, sendable, tool_result, tool_uses, user
from longrun.tools import DEFINITIONS, TOOLS, act_key

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from longrun.messages import Block, Message
    from longrun.model import Model
    from longrun.world import World

UNKNOWN_TEXT = "outcome unknown: the process died, and nothing says whether this was begun"


@dataclass(eq=False)
class MessageList:
    """A session as the list of its messages, in one file."""

    path: Path
    lines: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
        data = self.path.read_bytes()
        whole = data[: data.rfind(b"\n") + 1]
        os.ftruncate(self._descriptor, len(whole))
        os.fsync(self._descriptor)
        sync_directory(self.path.parent)
        self.lines = [json.loads(line) for line in whole.splitlines()]

    def append(self, message: Message) -> None:
        """Keep a message; durable when this returns."""
        self._write(dict(message))

    def messages(self) -> list[Message]:
        """What the model is sent: neighbours of one role are one message, results before texts."""
        return joined(self.lines)

    def branch(self, count: int, path: Path) -> int:
        """Go on from the first ``count`` lines, in a copy at ``path``. Returns how many bytes that wrote."""
        copy = MessageList(path)
        for line in self.lines[:count]:
            copy.append(line)
        copy.close()
        return path.stat().st_size

    def _write(self, line: dict[str, Any]) -> int:
        data = canonical(line).encode() + b"\n"
        write_all(self._descriptor, data)
        os.fsync(self._descriptor)
        self.lines.append(line)
        return len(data)

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)


class EntryTree(MessageList):
    """A session as entries, each with its parent: several branches in one file."""

    def append(self, message: Message) -> None:
        """Keep a message behind the leaf; durable when this returns."""
        self._write({"id": len(self.lines), "parent": self.leaf, "message": dict(message)})

    @property
    def leaf(self) -> int | None:
        """The last line, or where it says that the next one goes on."""
        last = self.lines[-1] if self.lines else {"id": None}
        found: int | None = last["to"] if "to" in last else last["id"]
        return found

    def messages(self) -> list[Message]:
        """Those of the branch with the leaf."""
        path, at = [], self.leaf
        while at is not None:
            path.append(self.lines[at]["message"])
            at = self.lines[at]["parent"]
        return joined(path[::-1])

    def branch(self, count: int, path: Path) -> int:  # noqa: ARG002 - no copy is needed, so no path
        """Go on behind entry ``count - 1``, in this file. Returns how many bytes that wrote."""
        return self._write({"id": len(self.lines), "to": count - 1})


def joined(lines: Iterable[Message]) -> list[Message]:
    """Neighbours of one role as one message."""
    found: list[Message] = []
    for line in lines:
        if found and found[-1]["role"] == line["role"]:
            found[-1] = {"role": line["role"], "content": [*blocks(found[-1]), *blocks(line)]}
        else:
            found.append({"role": line["role"], "content": line["content"]})
    return found


def triage(store: MessageList, model: Model, world: World, task: str) -> list[str]:
    """Carry a task to its end, whatever was done of it before. Returns the acts that a person must decide about.

    A call without a result at the beginning has one class here, unknown: a reply is looked for in the world, a read
    is made again, and what can be neither looked for nor repeated is not done again.
    """
    asks: list[str] = []
    if not store.lines:
        store.append(user(task))
    fresh = False
    while True:
        messages = store.messages()
        calls, answered = _open_calls(messages)
        for call in calls:
            if call["id"] not in answered:
                store.append({"role": "user", "content": [_answer(call, world, messages, asks, fresh=fresh)]})
        if not calls and messages[-1]["role"] == "assistant":
            return asks
        request = {"model": MODEL_NAME, "system": "", "tools": DEFINITIONS, "max_tokens": MAX_TOKENS}
        response = model.reply({**request, "messages": store.messages()})
        store.append({"role": "assistant", "content": sendable(response["content"])})
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
