"""Protocol v2: what a checkpoint holds, its bytes, and the strict way back.

A checkpoint is one canonical JSON object whose first member is the SHA-256 of the rest. Reading is
strict: a file that is not exactly what was written is refused as :class:`~longrun.errors.Damaged`,
another version as :class:`~longrun.errors.UnsupportedVersion`, and neither is ever taken for an
empty start. Where the bytes are kept, and when they are durable, is the business of ``save``.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Literal

from longrun.errors import Damaged, InvalidTranscript, UnsupportedVersion
from longrun.messages import canonical, check_messages, parse_strict, tool_uses
from longrun.transcript_text import transcript_text

if TYPE_CHECKING:
    from pathlib import Path

    from longrun.messages import Message

VERSION = 2
CHECKPOINT_NAME = "checkpoint.json"
USAGE_FIELDS = ("input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
NO_USAGE: dict[str, int] = dict.fromkeys(USAGE_FIELDS, 0)
STATUSES = ("running", "waiting", "stopped", "done")

Status = Literal["running", "waiting", "stopped", "done"]

_PREFIX = '{"checksum":"'
_CHECKSUM_END = len(_PREFIX) + 64


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenCall:
    """A call of the last assistant message that has no result yet.

    ``key`` names the act, None for a read; ``attempts`` counts the times it was begun, ``started``
    says that at least once the world may have changed, or the read may have been made.
    """

    id: str
    name: str
    input: dict[str, Any]
    key: str | None
    attempts: int = 0
    started: bool = False

    def to_json(self) -> dict[str, Any]:
        """The call as the checkpoint holds it."""
        return {name: getattr(self, name) for name in _CALL_TYPES}


_CALL_TYPES: dict[str, tuple[type, ...]] = {
    "id": (str,),
    "name": (str,),
    "input": (dict,),
    "key": (str, type(None)),
    "attempts": (int,),
    "started": (bool,),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """All that a fresh process needs to go on. Values are never changed in place.

    ``seq`` numbers the saves and ``parent`` is the one that this continues; ``turns`` counts the
    assistant messages; ``requests_started`` is raised and saved before each request, so that its
    difference to ``requests_saved`` bounds the answers that were paid and lost; ``tokens_used`` is
    the sum of ``usage`` and never falls; ``context_tokens`` is the size of the latest exchange;
    ``ledger_seen`` counts the ledger's records at this save.
    """

    run_id: str
    task: str
    messages: tuple[Message, ...]
    status: Status = "running"
    end: dict[str, str] | None = None
    seq: int = 0
    parent: int | None = None
    timeline: str = "main"
    writer_epoch: int = 1
    turns: int = 0
    requests_started: int = 0
    requests_saved: int = 0
    usage: dict[str, int] = field(default_factory=lambda: dict(NO_USAGE))
    tokens_used: int = 0
    context_tokens: int = 0
    pending_tool_use: tuple[OpenCall, ...] = ()
    ledger_seen: int = 0
    version: int = VERSION

    @property
    def finished(self) -> bool:
        """Whether nothing is left to do here: done, stopped, or a person has to decide."""
        return self.status != "running"

    def to_json(self) -> dict[str, Any]:
        """The object without its checksum."""
        form: dict[str, Any] = {name: getattr(self, name) for name in _TYPES}
        form["pending_tool_use"] = [call.to_json() for call in self.pending_tool_use]
        return form


_TYPES: dict[str, tuple[type, ...]] = {
    "version": (int,),
    "run_id": (str,),
    "task": (str,),
    "status": (str,),
    "end": (dict, type(None)),
    "seq": (int,),
    "parent": (int, type(None)),
    "timeline": (str,),
    "writer_epoch": (int,),
    "turns": (int,),
    "requests_started": (int,),
    "requests_saved": (int,),
    "usage": (dict,),
    "tokens_used": (int,),
    "context_tokens": (int,),
    "messages": (list,),
    "pending_tool_use": (list,),
    "ledger_seen": (int,),
}
assert set(_TYPES) == {each.name for each in fields(Checkpoint)}
_COUNTERS = tuple(name for name, kinds in _TYPES.items() if int in kinds)


def encode(checkpoint: Checkpoint) -> bytes:
    """The bytes of the file."""
    return b"".join(encode_in_pieces(checkpoint))


def encode_in_pieces(checkpoint: Checkpoint) -> tuple[bytes, ...]:
    """The same, one piece behind the other, so that of a long transcript nothing is copied. The checksum stands first.

    It covers all that follows, and the counters, which change from save to save, stand before the messages: so
    all of it is summed anew each time.
    """
    pieces = _pieces(checkpoint.to_json())
    checksum = hashlib.sha256(b"{")
    for piece in pieces:
        checksum.update(piece)
    return f'{_PREFIX}{checksum.hexdigest()}",'.encode(), *pieces


def _pieces(form: dict[str, Any]) -> tuple[bytes, ...]:
    """The canonical text of ``form`` behind its first brace. A save adds a message or two: the others keep theirs."""
    names = sorted(form)
    at = names.index("messages")
    before, after = (canonical({name: form[name] for name in part}).encode() for part in (names[:at], names[at + 1 :]))
    return before[1:-1] + b',"messages":[', transcript_text(form["messages"]), b"]," + after[1:]


def decode(data: bytes, path: Path) -> Checkpoint:
    """Read a checkpoint back; ``path`` is for the messages.

    Raises Damaged for anything that :func:`encode` did not write, and UnsupportedVersion where the
    version is another whole number.
    """
    form = parse_object(data, path)
    require_version(form, path)
    require_checksum(data, form, path)
    return from_form(form, path)


def require_version(form: dict[str, Any], path: Path) -> None:
    """Raise UnsupportedVersion where the version is another whole number."""
    version = form.get("version")
    if type(version) is int and version != VERSION:
        raise UnsupportedVersion(path, version)


def require_checksum(data: bytes, form: dict[str, Any], path: Path) -> None:
    """Raise Damaged unless the checksum is that of the bytes behind it."""
    text = data.decode("ascii")
    rest = "{" + text[_CHECKSUM_END + 2 :]
    if not text.startswith(_PREFIX) or hashlib.sha256(rest.encode("ascii")).hexdigest() != form.get("checksum"):
        raise Damaged(path, "the checksum does not fit the contents")


def from_form(form: dict[str, Any], path: Path) -> Checkpoint:
    """The checkpoint of a JSON object, whatever its checksum. Raises Damaged where it makes no sense."""
    checkpoint = believe(form, path)
    _check_sense(checkpoint, path)
    return checkpoint


def believe(form: dict[str, Any], path: Path) -> Checkpoint:
    """The checkpoint of a JSON object, whatever it says. Raises Damaged only where a field has another type."""
    fields_of = {name: value for name, value in form.items() if name != "checksum"}
    _check_types(fields_of, _TYPES, path, "the checkpoint")
    return _build(fields_of, path)


def parse_object(data: bytes, path: Path) -> dict[str, Any]:
    """The JSON object that ``data`` is. Raises Damaged where it is none."""
    try:
        form = parse_strict(data.decode("ascii"))
    except (ValueError, RecursionError) as error:
        raise Damaged(path, f"not whole JSON ({len(data)} bytes; {error})") from error
    if not isinstance(form, dict):
        raise Damaged(path, "not a JSON object")
    return form


def _check_types(form: dict[str, Any], types: dict[str, tuple[type, ...]], path: Path, what: str) -> None:
    if form.keys() != types.keys():
        odd = ", ".join(sorted(form.keys() ^ types.keys()))
        raise Damaged(path, f"{what} has missing or surplus fields: {odd}")
    for name, kinds in types.items():
        if type(form[name]) not in kinds:
            raise Damaged(path, f"{what}: {name} is {form[name]!r:.60}")


def _build(form: dict[str, Any], path: Path) -> Checkpoint:
    calls = []
    for call in form["pending_tool_use"]:
        if not isinstance(call, dict):
            raise Damaged(path, "an open call is no object")
        _check_types(call, _CALL_TYPES, path, "an open call")
        calls.append(OpenCall(**call))
    return Checkpoint(**{**form, "messages": tuple(form["messages"]), "pending_tool_use": tuple(calls)})


def _check_sense(saved: Checkpoint, path: Path) -> None:
    """What no writer of this protocol can have saved is damage too, checksum or not."""
    try:
        check_messages(saved.messages, may_end_with_assistant=True)
    except InvalidTranscript as error:
        raise Damaged(path, f"the transcript is broken: {error}") from error
    calls = [(call["id"], call["name"], call["input"]) for call in tool_uses(saved.messages[-1])]
    promises = (
        (saved.status in STATUSES, f"status is {saved.status!r}"),
        ((saved.end is not None) == (saved.status in ("stopped", "done")), "end does not fit status"),
        (min(getattr(saved, name) or 0 for name in _COUNTERS) >= 0, "a counter is negative"),
        (saved.usage.keys() >= NO_USAGE.keys(), "usage lacks a counter"),
        (all(type(count) is int for count in saved.usage.values()), "usage holds another thing than numbers"),
        (saved.turns == sum(message["role"] == "assistant" for message in saved.messages), "turns is miscounted"),
        (saved.requests_saved <= saved.requests_started, "more answers than requests"),
        ([(call.id, call.name, call.input) for call in saved.pending_tool_use] == calls, "other calls are open"),
    )
    for kept, reason in promises:
        if not kept:
            raise Damaged(path, reason)
    if saved.tokens_used != sum(saved.usage.values()):
        raise Damaged(path, "tokens_used is not the sum of usage")
