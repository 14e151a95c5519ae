"""Reading protocol v1: its files become those of version 2 where nothing must be guessed; others are refused.

Version 1 is the protocol of a published course: ``checkpoint.json`` with six fields (``version``, ``task``,
``messages``, ``turns``, ``tokens_used``, ``pending_tool_use``: null or one call) and ``effects.json``, a map from call
id to ``{name, result, at}``. It had no end marker, no attempts, no act keys and no checksum, so a v1 file that
was changed and still makes sense is taken as it is.

What is not known is not made up: turns are counted anew in the transcript; tokens go on under ``usage.legacy``;
a call that was open is taken for started; a transcript that ends with plain text is stopped, because nobody can
tell whether that was the end. :func:`read` changes nothing. :func:`convert` keeps the originals as ``*.v1``
and can be killed at any step: up to its last rename the directory is one of version 1.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from longrun import files
from longrun.errors import Damaged, InvalidTranscript
from longrun.ledger import LEDGER_NAME, Record
from longrun.messages import blocks, canonical, check_messages, parse_strict, text_of, tool_uses
from longrun.protocol import CHECKPOINT_NAME, NO_USAGE, Checkpoint, OpenCall, encode
from longrun.tools import TOOLS, act_key, args_digest

if TYPE_CHECKING:
    from pathlib import Path

    from longrun.messages import Block, Message

EFFECTS_NAME = "effects.json"
KEPT_SUFFIX = ".v1"
END_UNKNOWN = "v1_end_unknown"
_FIELDS: dict[str, tuple[type, ...]] = {
    "version": (int,),
    "task": (str,),
    "messages": (list,),
    "turns": (int,),
    "tokens_used": (int,),
    "pending_tool_use": (dict, type(None)),
}
_NOT_OF_V1 = b'{"checksum":'  # how every checkpoint of version 2 begins


@dataclass(frozen=True, slots=True, kw_only=True)
class Converted:
    """What a directory of version 1 says in the words of version 2, and the bytes of its checkpoint."""

    checkpoint: Checkpoint
    records: tuple[Record, ...]
    original: bytes


def read(directory: Path) -> Converted | None:
    """The run of version 1 in ``directory``, converted; None where there is none. Raises Damaged, changes nothing."""
    path = directory / CHECKPOINT_NAME
    data = _bytes_of(path)
    if data is None or data.startswith(_NOT_OF_V1):
        return None
    try:
        form = parse_strict(data.decode())
    except (ValueError, RecursionError):
        return None  # whatever it is, the reader of version 2 refuses it
    if not isinstance(form, dict) or type(form.get("version")) is not int or form["version"] != 1 or "run_id" in form:
        return None
    _check_types(form, path)
    _check_transcript(form["messages"], path)
    run_id = f"run-{hashlib.sha256(data).hexdigest()[:16]}"  # the same, however often the conversion is begun
    records = _records(form["messages"], run_id, *_effects(directory))
    return Converted(checkpoint=_checkpoint(form, run_id, len(records), path), records=records, original=data)


def convert(directory: Path) -> None:
    """Make a directory of version 1 one of version 2; leave any other alone. Raises Damaged, and then changes nothing.

    Only the one opener of a directory may do this.
    """
    found = read(directory)
    if found is None:
        return
    lines = b"".join(record.line() for record in found.records)
    kept, ledger = directory / f"{CHECKPOINT_NAME}{KEPT_SUFFIX}", directory / LEDGER_NAME
    for path, wanted in ((kept, found.original), (ledger, lines)):
        if _bytes_of(path) not in (None, wanted):
            raise Damaged(path, "it stands beside a checkpoint of version 1 that it does not belong to")
    _put(kept, found.original)
    effects = directory / EFFECTS_NAME
    if effects.exists():
        os.rename(effects, f"{effects}{KEPT_SUFFIX}")
        files.sync_directory(directory)
    _put(ledger, lines)
    _put(directory / CHECKPOINT_NAME, encode(found.checkpoint))  # from here on it is version 2


def _put(path: Path, data: bytes) -> None:
    """Make ``path`` hold ``data``, durably: the old file or the new one, never a mix."""
    temporary = files.temporary_name(path)
    files.write_new(temporary, data, sync=True)
    os.rename(temporary, path)
    files.sync_directory(path.parent)


def _bytes_of(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


# --- the checkpoint -------------------------------------------------------------------------------


def _check_types(form: dict[str, Any], path: Path) -> None:
    if form.keys() != _FIELDS.keys():
        odd = ", ".join(sorted(form.keys() ^ _FIELDS.keys()))
        raise Damaged(path, f"version 1 has missing or surplus fields: {odd}")
    for name, kinds in _FIELDS.items():
        if type(form[name]) not in kinds:
            raise Damaged(path, f"version 1: {name} is {form[name]!r:.60}")
    if form["turns"] < 0 or form["tokens_used"] < 0:
        raise Damaged(path, "version 1: a counter is negative")


def _check_transcript(messages: list[Message], path: Path) -> None:
    try:
        check_messages(messages, may_end_with_assistant=True)
    except InvalidTranscript as error:
        raise Damaged(path, f"the transcript is broken: {error}") from error


def _checkpoint(form: dict[str, Any], run_id: str, records: int, path: Path) -> Checkpoint:
    messages: list[Message] = form["messages"]
    turns = sum(message["role"] == "assistant" for message in messages)
    if form["turns"] > turns:
        raise Damaged(path, f"version 1 counts {form['turns']} turns, its transcript has {turns}")
    open_calls = _open_calls(messages[-1], form["pending_tool_use"], run_id, path)
    ended = messages[-1]["role"] == "assistant" and not open_calls
    return Checkpoint(
        run_id=run_id,
        task=form["task"],
        messages=tuple(messages),
        status="stopped" if ended else "running",
        end={"reason": END_UNKNOWN, "text": text_of(messages[-1])} if ended else None,
        seq=1,
        turns=turns,
        requests_started=turns,  # version 1 did not count requests: those that were answered are known
        requests_saved=turns,
        usage={**NO_USAGE, "legacy": form["tokens_used"]},
        tokens_used=form["tokens_used"],
        pending_tool_use=open_calls,
        ledger_seen=records,
    )


def _open_calls(last: Message, pending: dict[str, Any] | None, run_id: str, path: Path) -> tuple[OpenCall, ...]:
    """The calls of the last message. One may have been begun, and version 1 says not how far any of them came."""
    calls = tool_uses(last)
    if pending is None and calls:
        raise Damaged(path, f"call {calls[0]['id']} is open, and version 1 does not say whether it was begun")
    named = [{name: call[name] for name in ("id", "name", "input")} for call in calls]
    if pending is not None and pending not in named:
        raise Damaged(path, f"the pending call {pending.get('id')!r} is none of the last message")
    return tuple(_open_call(call, run_id) for call in calls)


def _open_call(call: Block, run_id: str) -> OpenCall:
    tool = TOOLS.get(call["name"])
    key = act_key(run_id, tool, call) if tool else None
    return OpenCall(id=call["id"], name=call["name"], input=call["input"], key=key, attempts=1, started=True)


# --- the ledger -----------------------------------------------------------------------------------


def _effects(directory: Path) -> tuple[dict[str, Any], Path]:
    """The map of effects, also where a conversion that was interrupted has moved it; empty where there is none.

    After a power loss it may stand there under both names; two that differ are refused.
    """
    path, kept = directory / EFFECTS_NAME, directory / f"{EFFECTS_NAME}{KEPT_SUFFIX}"
    data, moved = _bytes_of(path), _bytes_of(kept)
    if data is not None and moved not in (None, data):
        raise Damaged(kept, f"it stands beside another {EFFECTS_NAME} and a checkpoint of version 1")
    if data is None:
        data, path = moved, kept if moved is not None else path
    if data is None:
        return {}, path
    try:
        form = parse_strict(data.decode())
    except (ValueError, RecursionError) as error:
        raise Damaged(path, f"not whole JSON ({len(data)} bytes; {error})") from error
    if not isinstance(form, dict):
        raise Damaged(path, "not a map from call id to effect: which call did what is lost")
    return form, path


def _records(messages: list[Message], run_id: str, effects: dict[str, Any], path: Path) -> tuple[Record, ...]:
    """The effects as records of the acts that the calls of the transcript name; reads need none."""
    calls = {block["id"]: block for message in messages for block in blocks(message) if block["type"] == "tool_use"}
    records: list[Record] = []
    for identity, effect in effects.items():
        call = calls.get(identity)
        if call is None:
            raise Damaged(path, f"effect of call {identity!r}, which the transcript does not have: of what, is lost")
        if not isinstance(effect, dict) or effect.get("name") != call["name"] or effect.get("result") is None:
            raise Damaged(path, f"effect of call {identity!r} says neither that nor how it ended: {effect!r:.60}")
        tool = TOOLS.get(call["name"])
        if tool is not None and tool.nature == "read-only":
            continue
        key = f"{run_id}/{call['input'].get('ticket', 'inbox')}/{call['name']}"
        records.append(_record(call, effect["result"], key, run_id, len(records)))
    return tuple(records)


def _record(call: Block, result: Any, key: str, run_id: str, before: int) -> Record:
    return Record(
        n=before + 1,
        run_id=run_id,
        timeline="main",
        writer_epoch=1,
        key=key,
        tool=call["name"],
        args_digest=args_digest(call["input"]),
        tool_use_id=call["id"],
        outcome="done",
        result=result if isinstance(result, str) else canonical(result),
    )
