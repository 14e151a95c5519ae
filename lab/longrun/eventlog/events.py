"""What can happen in a session: one schema per type of event, as a dataclass.

A field with a default may be left away, and is then not written. Values are plain JSON. What is in a
message, a tool's input or a note is not looked at here. Records of an unknown type are for
:mod:`longrun.eventlog.scan` to judge. ``schemas()`` is what ``schemas.json`` beside this module holds; a test
compares them.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from longrun.eventlog.errors import InvalidEvent

FORMAT = 1
"""Of a whole log, in its first record. A program reads its own and all lower ones."""

Json = dict[str, Any]
Outcome = Literal["done", "failed", "denied", "not-started", "unknown"]
Policy = Literal["read", "keyed", "ask"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """What all events share. ``SURFACE``: the model sees it. ``IGNORABLE``: no projection depends on it."""

    TYPE: ClassVar[str] = ""
    SURFACE: ClassVar[bool] = False
    IGNORABLE: ClassVar[bool] = False

    def data(self) -> Json:
        """The fields that are there, as JSON."""
        pairs = ((field.name, getattr(self, field.name), field.default) for field in dataclasses.fields(self))
        return {name: value for name, value, default in pairs if value is not default or default is dataclasses.MISSING}


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionStart(Event):
    """The first record of a session, and only that. ``parent`` names the record of another session it was forked at."""

    TYPE: ClassVar[str] = "session/start"
    session_id: str
    format: int
    created_ms: int
    parent: Json | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentStart(Event):
    """The first line of every later segment; ``before`` says how long the sealed one is, and how it ends."""

    TYPE: ClassVar[str] = "segment/start"
    segment: int
    before: Json


@dataclass(frozen=True, slots=True, kw_only=True)
class WriterStart(Event):
    """The first act of each opening: from here on the fence is this writer's."""

    TYPE: ClassVar[str] = "writer/start"
    writer: str
    reason: Literal["new", "resume", "takeover"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestHeader(Event):
    """All of a request but its messages."""

    TYPE: ClassVar[str] = "request/header"
    model: str
    system: str
    tools: list[Any]
    params: Json
    reason: Literal["initial", "resume", "change"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnStart(Event):
    """A person, or a program, is about to say something. Turns count from 1."""

    TYPE: ClassVar[str] = "turn/start"
    turn: int


@dataclass(frozen=True, slots=True, kw_only=True)
class UserMessage(Event):
    """What the model is told."""

    TYPE: ClassVar[str] = "user/message"
    SURFACE: ClassVar[bool] = True
    turn: int
    content: str | list[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCall(Event):
    """A request is about to be sent: made of that header and of the messages up to here, with that digest."""

    TYPE: ClassVar[str] = "model/call"
    turn: int
    step: int
    attempt: int
    header_seq: int
    request_sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelError(Event):
    """A request came to no answer that could be used."""

    TYPE: ClassVar[str] = "model/error"
    turn: int
    step: int
    attempt: int
    kind: str
    status: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AssistantMessage(Event):
    """A whole answer: ``message_stop`` came, the stop reason is set, every input parses."""

    TYPE: ClassVar[str] = "assistant/message"
    SURFACE: ClassVar[bool] = True
    turn: int
    step: int
    message_id: str
    content: list[Any]
    stop_reason: str
    usage: Json


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalAsked(Event):
    """A person is asked whether a call may be carried out, with just this input."""

    TYPE: ClassVar[str] = "approval/asked"
    approval_id: str
    call_id: str
    input_sha256: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalDecided(Event):
    """What the person said, about that input."""

    TYPE: ClassVar[str] = "approval/decided"
    approval_id: str
    decision: Literal["allow", "deny", "expired"]
    by: str
    input_sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall(Event):
    """The body of a tool is about to run. Durable and promised before it does."""

    TYPE: ClassVar[str] = "tool/call"
    turn: int
    step: int
    call_id: str
    name: str
    input: Json
    policy: Policy
    key: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult(Event):
    """The one answer to a call. ``synthetic``: nobody's answer, but what a recovery could find out."""

    TYPE: ClassVar[str] = "tool/result"
    SURFACE: ClassVar[bool] = True
    turn: int
    step: int
    call_id: str
    content: str | list[Any]
    is_error: bool
    synthetic: bool
    outcome: Outcome
    call_seq: int | None = None
    external_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnEnd(Event):
    """The turn is over; ``interrupted`` where a recovery says so."""

    TYPE: ClassVar[str] = "turn/end"
    turn: int
    synthetic: bool
    reason: Literal["completed", "limit", "failed", "denied", "interrupted"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Compaction(Event):
    """From here on the model sees a summary in the place of the messages from one record to another."""

    TYPE: ClassVar[str] = "compaction"
    SURFACE: ClassVar[bool] = True
    summary: str
    from_seq: int
    to_seq: int
    tokens_before: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchMove(Event):
    """What comes next goes on from another record; None for the very beginning."""

    TYPE: ClassVar[str] = "branch/move"
    to_seq: int | None
    summary: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Label(Event):
    """A name for a record."""

    TYPE: ClassVar[str] = "label"
    target_seq: int
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Note(Event):
    """Anything, for whom it concerns: readers may pass it over."""

    TYPE: ClassVar[str] = "note"
    IGNORABLE: ClassVar[bool] = True
    note: Json

    def data(self) -> Json:
        """The note itself."""
        return self.note


EVENTS: dict[str, type[Event]] = {kind.TYPE: kind for kind in Event.__subclasses__()}
SURFACE = frozenset(name for name, kind in EVENTS.items() if kind.SURFACE)


class _Field(typing.NamedTuple):
    name: str
    types: tuple[type, ...]
    choices: tuple[Any, ...]


def _field(name: str, hint: Any) -> _Field:
    """The JSON types, or the choices, that an annotation allows."""
    if typing.get_origin(hint) is Literal:
        return _Field(name, (), typing.get_args(hint))
    parts = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    return _Field(name, tuple(typing.get_origin(part) or part for part in parts), ())


class Shape:
    """The compiled schema of one type of event."""

    def __init__(self, kind: type[Event]) -> None:
        hints = typing.get_type_hints(kind)
        fields = dataclasses.fields(kind)
        self.fields = tuple(_field(field.name, hints[field.name]) for field in fields)
        self.allowed = frozenset(field.name for field in fields)
        self.required = frozenset(field.name for field in fields if field.default is dataclasses.MISSING)
        self.open = kind is Note

    def check(self, kind: str, data: Any) -> None:
        """Raise InvalidEvent unless ``data`` has these fields, of these types, and no other."""
        if type(data) is not dict:
            text = f"{kind}: the data must be an object, got {type(data).__name__}"
            raise InvalidEvent(text)
        if self.open:
            return
        names = data.keys()
        if not self.required <= names or not names <= self.allowed:
            missing, other = sorted(self.required - names), sorted(names - self.allowed)
            text = f"{kind}: missing fields {missing}, unknown fields {other}"
            raise InvalidEvent(text)
        for name, kinds, choices in self.fields:
            if name in names and (type(data[name]) not in kinds if kinds else data[name] not in choices):
                wanted = " or ".join(each.__name__ for each in kinds) if kinds else f"one of {', '.join(choices)}"
                text = f"{kind}: {name} must be {wanted}, got {data[name]!r:.60}"
                raise InvalidEvent(text)


SHAPES = {name: Shape(kind) for name, kind in EVENTS.items()}


def schemas() -> dict[str, Any]:
    """All schemas as JSON: per type its fields, which may be left away, and whether the model sees it."""
    return {
        name: {
            "surface": EVENTS[name].SURFACE,
            "ignorable": EVENTS[name].IGNORABLE,
            "fields": {
                field.name: {
                    "required": field.name in shape.required,
                    "types": sorted(each.__name__ for each in field.types),
                    "choices": list(field.choices),
                }
                for field in shape.fields
            },
        }
        for name, shape in sorted(SHAPES.items())
    }
