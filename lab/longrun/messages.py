"""Messages as plain JSON values, and the rules by which the Messages API refuses a list of them.

Models the rules on roles, content and the pairing of ``tool_use`` with ``tool_result``, with the
API's own texts where they are known. Of server tools it models the one thing that a loop must know: an
assistant message that ends with an unanswered ``server_tool_use`` is a paused turn, and may be sent back as
the last one. Does not model their results, images, documents, thinking or citations.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NoReturn

from longrun.errors import InvalidTranscript

if TYPE_CHECKING:
    from collections.abc import Sequence

Block = dict[str, Any]
Message = dict[str, Any]

_ENCODER = json.JSONEncoder(sort_keys=True, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
BLOCK_TYPES = ("text", "tool_use", "server_tool_use", "tool_result")


def canonical(value: Any) -> str:
    r"""The one JSON text of ``value``: sorted keys, ASCII escapes, no blanks, no NaN.

    >>> canonical({"b": "é", "a": 1})
    '{"a":1,"b":"\\u00e9"}'
    """
    return _ENCODER.encode(value)


def _refuse_constant(name: str) -> NoReturn:
    text = f"{name} is not JSON"
    raise ValueError(text)


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)


def parse_strict(text: str) -> Any:
    """Read JSON; NaN and infinities are refused. Raises ValueError."""
    return _DECODER.decode(text)


def user(text: str) -> Message:
    """A message of the user."""
    return {"role": "user", "content": text}


def tool_result(tool_use_id: str, text: str, *, is_error: bool = False) -> Block:
    """The answer to one call."""
    block: Block = {"type": "tool_result", "tool_use_id": tool_use_id, "content": text}
    return {**block, "is_error": True} if is_error else block


def blocks(message: Message) -> list[Block]:
    """The content of a message as blocks, also where it is one string."""
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def tool_uses(message: Message) -> list[Block]:
    """The calls that an assistant message makes, in order; none for a user message."""
    return [] if message["role"] != "assistant" else [each for each in blocks(message) if each["type"] == "tool_use"]


def sendable(content: Sequence[Block]) -> list[Block]:
    """The blocks of an answer that may be sent back: the API gives blank texts, and refuses them."""
    return [block for block in content if block["type"] != "text" or block["text"].strip()]


def is_paused(message: Message) -> bool:
    """Whether the assistant stopped in the middle of its turn, and goes on when it gets the message back."""
    return message["role"] == "assistant" and bool(blocks(message)[-1]["type"] == "server_tool_use")


def text_of(message: Message) -> str:
    """All text of a message, of which only the content counts."""
    return "\n".join(each["text"] for each in blocks(message) if each["type"] == "text")


def result_text(block: Block) -> str:
    """The text of a ``tool_result`` block, whichever form its content has."""
    content = block.get("content", "")
    return content if isinstance(content, str) else "\n".join(each["text"] for each in content)


def normalised(messages: Sequence[Message]) -> list[Message]:
    """The same transcript with call ids numbered in order, so that two runs can be compared."""
    names: dict[str, str] = {}
    for message in messages:
        for block in tool_uses(message):
            names[block["id"]] = f"call-{len(names) + 1}"
    renamed = []
    for message in messages:
        content = message["content"]
        if not isinstance(content, str):
            content = [_renamed(block, names) for block in content]
        renamed.append({"role": message["role"], "content": content})
    return renamed


def _renamed(block: Block, names: dict[str, str]) -> Block:
    for field in ("id", "tool_use_id"):
        if field in block:
            return {**block, field: names.get(block[field], block[field])}
    return block


# --- the strict rules -----------------------------------------------------------------------------


def check_messages(messages: Any, *, may_end_with_assistant: bool = False) -> None:
    """Raise InvalidTranscript, with the API's text, unless ``messages`` may be sent.

    With ``may_end_with_assistant`` the last message may be the assistant's, with calls still open:
    a transcript as it is stored between two requests.
    """
    if not isinstance(messages, (list, tuple)) or not messages:
        _refuse("messages: at least one message is required")
    open_ids: list[str] = []
    seen: set[str] = set()
    for number, message in enumerate(messages):
        where = f"messages.{number}"
        content = _check_shape(message, where)
        if number == 0 and message["role"] != "user":
            _refuse('messages: first message must use the "user" role')
        if message["role"] == "user":
            _check_results(content, open_ids, where)
            open_ids = []
        else:
            _check_none_open(open_ids, number - 1)
            open_ids = _check_calls(content, seen, where)
    if messages[-1]["role"] == "assistant" and not may_end_with_assistant:
        _check_none_open(open_ids, len(messages) - 1)
        if not is_paused(messages[-1]):
            _refuse(
                "This model does not support assistant message prefill. The conversation must end with a user message.",
            )


def _refuse(text: str) -> NoReturn:
    raise InvalidTranscript(text)


def _check_shape(message: Any, where: str) -> list[Block]:
    if not isinstance(message, dict):
        _refuse(f"{where}: Input should be a valid dictionary")
    if message.get("role") not in ("user", "assistant"):
        _refuse(f"{where}.role: Input should be 'user' or 'assistant'")
    content = message.get("content")
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    elif not isinstance(content, list):
        _refuse(f"{where}.content: Input should be a valid list")
    elif not content:
        _refuse(f"{where}: all messages must have non-empty content except for the optional final assistant message")
    for index, block in enumerate(content):
        _check_block(block, f"{where}.content.{index}", where)
    return content


def _check_block(block: Any, place: str, where: str) -> None:
    if not isinstance(block, dict):
        _refuse(f"{place}: Input should be a valid dictionary")
    kind = block.get("type")
    if kind == "text":
        _check_text(block, place, where)
    elif kind in ("tool_use", "server_tool_use"):
        _check_call_shape(block, place)
    elif kind == "tool_result":
        _check_result_shape(block, place, where)
    else:
        _refuse(f"{place}: Input tag {kind!r} does not match any of the expected tags: {', '.join(BLOCK_TYPES)}")


def _check_text(block: Block, place: str, where: str) -> None:
    if not isinstance(block.get("text"), str):
        _refuse(f"{place}.text.text: Input should be a valid string")
    if not block["text"]:
        _refuse(f"{where}: text content blocks must be non-empty")
    if not block["text"].strip():
        _refuse(f"{where}: text content blocks must contain non-whitespace text")


def _check_call_shape(block: Block, place: str) -> None:
    for field in ("id", "name"):
        if not isinstance(block.get(field), str):
            _refuse(f"{place}.{block['type']}.{field}: Input should be a valid string")
    if not isinstance(block.get("input"), dict):
        _refuse(f"{place}.{block['type']}.input: Input should be a valid dictionary")


def _check_result_shape(block: Block, place: str, where: str) -> None:
    if not isinstance(block.get("tool_use_id"), str):
        _refuse(f"{place}.tool_result.tool_use_id: Input should be a valid string")
    content = block.get("content", "")
    if isinstance(content, str):
        return
    if not isinstance(content, list):
        _refuse(f"{place}.tool_result.content: Input should be a valid list")
    for index, inner in enumerate(content):
        if not isinstance(inner, dict) or inner.get("type") != "text":
            _refuse(f"{place}.tool_result.content.{index}: Input should be a valid text block")
        _check_block(inner, f"{place}.tool_result.content.{index}", where)


def _check_calls(content: list[Block], seen: set[str], where: str) -> list[str]:
    opened = []
    for block in content:
        if block["type"] == "tool_result":
            _refuse(f"{where}: `tool_result` blocks can only be in `user` messages")
        if block["type"] == "tool_use":
            if block["id"] in seen:
                _refuse("messages: `tool_use` ids must be unique")
            seen.add(block["id"])
            opened.append(block["id"])
    return opened


def _check_results(content: list[Block], open_ids: list[str], where: str) -> None:
    answered: set[str] = set()
    number = int(where.rpartition(".")[2])
    for index, block in enumerate(content):
        if block["type"] in ("tool_use", "server_tool_use"):
            _refuse(f"{where}: `{block['type']}` blocks can only be in `assistant` messages")
        if block["type"] != "tool_result":
            _check_none_open([each for each in open_ids if each not in answered], number - 1)
            continue
        identity, place = block["tool_use_id"], f"{where}.content.{index}"
        if identity in answered:
            _refuse(
                f"{place}: each tool_use must have a single result. "
                f"Found multiple `tool_result` blocks with id: {identity}",
            )
        if identity not in open_ids:
            _refuse(
                f"{place}: unexpected `tool_use_id` found in `tool_result` blocks: {identity}. "
                "Each `tool_result` block must have a corresponding `tool_use` block in the previous message.",
            )
        answered.add(identity)
    _check_none_open([each for each in open_ids if each not in answered], number - 1)


def _check_none_open(open_ids: list[str], number: int) -> None:
    if open_ids:
        _refuse(
            f"messages.{number}: `tool_use` ids were found without `tool_result` blocks immediately after: "
            f"{', '.join(open_ids)}. "
            "Each `tool_use` block must have a corresponding `tool_result` block in the next message.",
        )
