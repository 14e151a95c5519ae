"""Which event may follow which: one class for the writer before a write and for the reader after it.

A turn is: start, a message of the user, and then steps, each a model call and its answer, its calls and their
results, until ``turn/end``. A call gets one result, whatever happens; the next request, and the end of the turn, need
all of them. Not looked at: whether the texts make sense, whether the digest of a request fits (``context`` tells).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from longrun.eventlog.errors import InvalidEvent
from longrun.eventlog.events import FORMAT, SHAPES, SURFACE
from longrun.messages import blocks

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

    from longrun.eventlog.record import Draft, Record

USER, ANSWER, CALLING, RESULT, LAST_RESULT, SUMMARY = "uaCrRs"
"""Kinds of surface records: two of them leave calls open, ``C`` and ``r``."""
RESTS = frozenset({USER, ANSWER, LAST_RESULT, SUMMARY})
"""Where a branch, or a summary, may end: no call is without its result."""


def _calls(content: list[Any]) -> list[dict[str, Any]]:
    return [each for each in blocks({"content": content}) if type(each) is dict and each.get("type") == "tool_use"]


_Steps = dict[str, "Callable[[Any, Record | Draft], None]"]


@dataclass(slots=True)
class Pending:
    """A call without a result. ``called`` is the seq of its ``tool/call``; ``decision`` what a person said."""

    call_id: str
    name: str
    input: dict[str, Any]
    step: int
    called: int | None = None
    policy: str = "read"
    key: str | None = None
    approval_id: str | None = None
    input_sha256: str = ""
    decision: str | None = None


@dataclass(eq=False)
class Grammar:
    """What the records so far allow. ``surface`` has parent and kind of each surface record, ``leaf`` the latest."""

    seq: int = 0
    fence: int = 0
    session_id: str = ""
    turn: int = 0
    open: bool = False
    step: int = 0
    asking: bool = False
    header: int | None = None
    leaf: int | None = None
    pending: dict[str, Pending] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)
    surface: dict[int, tuple[int | None, str]] = field(default_factory=dict)

    def check(self, record: Record | Draft) -> None:
        """Raise InvalidEvent unless ``record`` may come next. Nothing changes."""
        kind, data = record.type, record.data
        if record.seq != self.seq:
            self._refuse(record, f"seq must be {self.seq}")
        if (self.seq == 0) != (kind == "session/start"):
            self._refuse(record, "the first record is session/start, and no other one is")
        raises = record.fence > self.fence and (kind == "writer/start" or not self.seq)
        if record.fence != self.fence and not raises:
            self._refuse(record, f"the fence is {self.fence}")
        shape = SHAPES.get(kind)
        if shape is None:
            return
        shape.check(kind, data)
        if kind in SURFACE and record.parent != self.leaf:
            self._refuse(record, f"parent must be the leaf, {self.leaf}, got {record.parent}")
        checks = self._CHECKS.get(kind)
        if checks is not None:
            checks(self, record)

    def take(self, record: Record | Draft) -> None:
        """Go on with a record that was checked."""
        self.seq, self.fence = record.seq + 1, record.fence
        take = self._TAKES.get(record.type)
        if take is not None:
            take(self, record)

    def advance(self, record: Record | Draft) -> None:
        """Check and take. Raises InvalidEvent, and is then as it was."""
        self.check(record)
        self.take(record)

    def path(self, leaf: int | None) -> list[int]:
        """The surface records from the first to ``leaf``, by their parents."""
        found = []
        while leaf is not None:
            found.append(leaf)
            leaf = self.surface[leaf][0]
        return found[::-1]

    def may_rest(self, seq: int | None) -> bool:
        """Whether a branch may begin behind this record."""
        return seq is None or (seq in self.surface and self.surface[seq][1] in RESTS)

    # --- checks ----------------------------------------------------------------------------------

    def _refuse(self, record: Record | Draft, text: str) -> NoReturn:
        raise InvalidEvent(f"record {record.seq}, {record.type}: {text}")  # noqa: TRY003, EM102 - one text, many places

    def _need(self, record: Record | Draft, holds: bool, text: str) -> None:  # noqa: FBT001 - reads as "need that"
        if not holds:
            self._refuse(record, text)

    def _check_start(self, record: Record | Draft) -> None:
        self._need(record, record.data["format"] <= FORMAT, f"format {record.data['format']} is newer than {FORMAT}")

    def _check_writer(self, record: Record | Draft) -> None:
        self._need(record, record.fence > self.fence or self.seq == 1, f"the fence must be above {self.fence}")

    def _check_idle(self, record: Record | Draft) -> None:
        self._need(record, not self.open, f"turn {self.turn} is open")

    def _check_turn_start(self, record: Record | Draft) -> None:
        self._check_idle(record)
        self._need(record, record.data["turn"] == self.turn + 1, f"the turn must be {self.turn + 1}")

    def _check_in_turn(self, record: Record | Draft) -> None:
        self._need(record, self.open and record.data["turn"] == self.turn, "it is not of an open turn")

    def _check_settled(self, record: Record | Draft) -> None:
        self._need(record, not self.pending, f"calls without a result: {', '.join(self.pending)}")

    def _check_user(self, record: Record | Draft) -> None:
        self._check_in_turn(record)
        self._check_settled(record)
        content = record.data["content"]
        texts = [content] if isinstance(content, str) else [each.get("text") for each in content]
        sound = bool(texts) and all(isinstance(each, str) and each.strip() for each in texts)
        self._need(record, sound, "the content must be texts that say something")

    def _check_model_call(self, record: Record | Draft) -> None:
        self._check_in_turn(record)
        self._check_settled(record)
        self._need(record, self.header is not None, "no header came before")
        self._need(record, record.data["header_seq"] == self.header, f"the latest header is {self.header}")
        self._need(record, record.data["step"] in (self.step, self.step + 1), f"step {self.step} came last")

    def _check_asked(self, record: Record | Draft) -> None:
        self._check_in_turn(record)
        self._need(record, self.asking, "no request is open")

    def _check_answer(self, record: Record | Draft) -> None:
        self._check_asked(record)
        data = record.data
        self._need(record, bool(data["content"]), "an answer without content cannot be sent back")
        self._need(record, bool(data["stop_reason"]), "the answer was not stopped: it is not whole")
        for call in _calls(data["content"]):
            sound = isinstance(call.get("id"), str) and isinstance(call.get("name"), str)
            self._need(record, sound and type(call.get("input")) is dict, "a call has no id, name or input")
            self._need(record, call["id"] not in self.used, f"the call {call['id']} was made before")

    def _call(self, record: Record | Draft) -> Pending:
        call = self.pending.get(record.data["call_id"])
        if call is None:
            self._refuse(record, f"the call {record.data['call_id']} is not open")
        return call

    def _check_approval(self, record: Record | Draft) -> None:
        self._need(record, self.open, "no turn is open")
        call = self._call(record)
        self._need(record, call.called is None and call.approval_id is None, "it was asked, or called, before")

    def _check_decision(self, record: Record | Draft) -> None:
        data = record.data
        asked = [each for each in self.pending.values() if each.approval_id == data["approval_id"]]
        self._need(record, len(asked) == 1 and asked[0].decision is None, "nobody asked, or it was decided before")
        self._need(record, asked[0].input_sha256 == data["input_sha256"], "it was asked about another input")

    def _check_tool_call(self, record: Record | Draft) -> None:
        self._check_in_turn(record)
        call, data = self._call(record), record.data
        self._need(record, call.called is None, "it was called before")
        self._need(record, (call.name, call.input) == (data["name"], data["input"]), "the model named another call")
        allowed = call.approval_id is None or call.decision == "allow"
        self._need(record, allowed, "the person who was asked has not allowed it")

    def _check_result(self, record: Record | Draft) -> None:
        self._check_in_turn(record)
        call = self._call(record)
        self._need(record, record.data.get("call_seq") == call.called, f"call_seq must be {call.called}")

    def _check_turn_end(self, record: Record | Draft) -> None:
        self._check_in_turn(record)
        self._check_settled(record)

    def _check_compaction(self, record: Record | Draft) -> None:
        self._check_settled(record)
        data, path = record.data, self.path(self.leaf)
        ends = (data["from_seq"], data["to_seq"])
        self._need(record, ends[0] <= ends[1] and all(end in path for end in ends), "no such stretch of this branch")
        first = self.surface[ends[0]][1]
        self._need(
            record,
            first not in (RESULT, LAST_RESULT) and self.may_rest(ends[1]),
            "it parts a call from its result",
        )

    def _check_move(self, record: Record | Draft) -> None:
        self._check_idle(record)
        to = record.data["to_seq"]
        self._need(record, self.may_rest(to), f"a branch cannot go on from record {to}")

    def _check_label(self, record: Record | Draft) -> None:
        self._need(record, 0 <= record.data["target_seq"] < self.seq, "it labels a record that is not there")

    # --- what a record changes -------------------------------------------------------------------

    def _take_start(self, record: Record | Draft) -> None:
        self.session_id = record.data["session_id"]

    def _take_header(self, record: Record | Draft) -> None:
        self.header = record.seq

    def _take_turn_start(self, record: Record | Draft) -> None:
        self.turn, self.open, self.step, self.asking = record.data["turn"], True, 0, False

    def _take_turn_end(self, _record: Record | Draft) -> None:
        self.open = self.asking = False

    def _surface(self, record: Record | Draft, kind: str) -> None:
        self.surface[record.seq] = (self.leaf, kind)
        self.leaf = record.seq

    def _take_user(self, record: Record | Draft) -> None:
        self._surface(record, USER)

    def _take_model_call(self, record: Record | Draft) -> None:
        self.step, self.asking = record.data["step"], True

    def _take_model_error(self, _record: Record | Draft) -> None:
        self.asking = False

    def _take_answer(self, record: Record | Draft) -> None:
        self.asking = False
        for call in _calls(record.data["content"]):
            self.used.add(call["id"])
            self.pending[call["id"]] = Pending(call["id"], call["name"], call["input"], record.data["step"])
        self._surface(record, CALLING if self.pending else ANSWER)

    def _take_approval(self, record: Record | Draft) -> None:
        call = self.pending[record.data["call_id"]]
        call.approval_id, call.input_sha256 = record.data["approval_id"], record.data["input_sha256"]

    def _take_decision(self, record: Record | Draft) -> None:
        for call in self.pending.values():
            if call.approval_id == record.data["approval_id"]:
                call.decision = record.data["decision"]

    def _take_tool_call(self, record: Record | Draft) -> None:
        call = self.pending[record.data["call_id"]]
        call.called, call.policy, call.key = record.seq, record.data["policy"], record.data.get("key")

    def _take_result(self, record: Record | Draft) -> None:
        del self.pending[record.data["call_id"]]
        self._surface(record, RESULT if self.pending else LAST_RESULT)

    def _take_compaction(self, record: Record | Draft) -> None:
        self._surface(record, SUMMARY)

    def _take_move(self, record: Record | Draft) -> None:
        self.leaf = record.data["to_seq"]

    _CHECKS: ClassVar[_Steps] = {
        "session/start": _check_start,
        "segment/start": _check_idle,
        "writer/start": _check_writer,
        "turn/start": _check_turn_start,
        "user/message": _check_user,
        "model/call": _check_model_call,
        "model/error": _check_asked,
        "assistant/message": _check_answer,
        "approval/asked": _check_approval,
        "approval/decided": _check_decision,
        "tool/call": _check_tool_call,
        "tool/result": _check_result,
        "turn/end": _check_turn_end,
        "request/header": _check_settled,
        "compaction": _check_compaction,
        "branch/move": _check_move,
        "label": _check_label,
    }
    _TAKES: ClassVar[_Steps] = {
        "session/start": _take_start,
        "request/header": _take_header,
        "turn/start": _take_turn_start,
        "turn/end": _take_turn_end,
        "user/message": _take_user,
        "model/call": _take_model_call,
        "model/error": _take_model_error,
        "assistant/message": _take_answer,
        "approval/asked": _take_approval,
        "approval/decided": _take_decision,
        "tool/call": _take_tool_call,
        "tool/result": _take_result,
        "compaction": _take_compaction,
        "branch/move": _take_move,
    }
