"""A turn that stopped between the call of a tool and its result: what the next request holds.

The session is a log of what was said, asked for and answered; a request is made of it anew each time. The
rules of the Messages API judge that request. Every function that is wrong says so, and where it was met.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from crashlab import Subject, Violation
from longrun.errors import InvalidTranscript
from longrun.messages import check_messages
from tests.casebook.durable import append_lines, read_lines
from tests.casebook.scenario import Scenario, scenario

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from crashlab import Lab

    Record = dict[str, Any]

LOST_SIGHT = "interrupted; nobody knows whether it was done"


class Session:
    """The log of one session: ``user``, ``calls``, ``result`` and ``say`` records."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / "session.jsonl"
        self.records: list[Record] = read_lines(self.path)

    def add(self, kind: str, **fields: Any) -> None:
        """Append one record, durably."""
        append_lines(self.path, [{"kind": kind, **fields}])
        self.records = read_lines(self.path)

    @property
    def is_over(self) -> bool:
        """Whether the assistant had the last word."""
        return bool(self.records) and self.records[-1]["kind"] == "say"

    def open_calls(self) -> list[str]:
        """Ids of the calls without a result."""
        answered = {each["id"] for each in self.records if each["kind"] == "result"}
        return [one for each in self.records if each["kind"] == "calls" for one in each["ids"] if one not in answered]


def project(records: list[Record], *, states: tuple[str, ...] = ("done", "error")) -> list[dict[str, Any]]:
    """The messages of a request; of the results those that ended in one of ``states``."""
    messages: list[dict[str, Any]] = []
    for record in records:
        role, blocks = _blocks(record, states)
        if messages and messages[-1]["role"] == role:
            messages[-1]["content"] += blocks
        elif blocks:
            messages.append({"role": role, "content": blocks})
    return messages


def _blocks(record: Record, states: tuple[str, ...]) -> tuple[str, list[dict[str, Any]]]:
    match record["kind"]:
        case "calls":
            calls = [{"type": "tool_use", "id": each, "name": "read_file", "input": {}} for each in record["ids"]]
            return "assistant", calls
        case "result":
            block = {"type": "tool_result", "tool_use_id": record["id"], "content": record["text"]}
            return "user", [block] if record["state"] in states else []
        case kind:
            return "assistant" if kind == "say" else "user", [{"type": "text", "text": record["text"]}]


def check_sent(_: Lab, end: list[list[dict[str, Any]]]) -> None:
    """Every request would have been taken by the API."""
    for messages in end:
        try:
            check_messages(messages, may_end_with_assistant=True)
        except InvalidTranscript as error:
            raise Violation(str(error), kind="invalid-transcript") from error


def start(lab: Lab, ids: tuple[str, ...]) -> list[Any]:
    """One turn: a question, a batch of calls, a result for each, an answer."""
    session = Session(lab.dir)
    session.add("user", text="what is in these files?")
    session.add("calls", ids=ids)
    for each in ids:
        session.add("result", id=each, state="done", text="a list of names")
    session.add("say", text="names")
    return [project(session.records)]


def go_on(lab: Lab, ids: tuple[str, ...], close: Callable[[Session], None], **how: Any) -> list[Any]:
    """The session is opened again, ``close`` deals with what is open, and the user says to go on."""
    session = Session(lab.dir)
    if not session.records:
        return start(lab, ids)
    if not session.is_over:
        close(session)
        session.add("user", text="go on")
        session.add("say", text="names")
    return [project(session.records, **how)]


def leave_open(_: Session) -> None:
    """Wrong: a call whose turn was stopped stays without a result, and the user's next words follow it.

    https://github.com/anthropics/claude-code/issues/473
    https://github.com/anomalyco/opencode/issues/21326
    https://github.com/aaif-goose/goose/issues/1624
    Of three parallel calls one may have its result, and two not:
    https://github.com/anthropics/claude-code/issues/1894
    """


def close_first_only(session: Session) -> None:
    """Wrong: answers one call of the batch; https://github.com/anthropics/claude-code/issues/1894."""
    for each in session.open_calls()[:1]:
        session.add("result", id=each, state="error", text=LOST_SIGHT)


def close_all(session: Session) -> None:
    """Right: every open call gets a result, which says that nobody knows."""
    for each in session.open_calls():
        session.add("result", id=each, state="error", text=LOST_SIGHT)


def described(ids: tuple[str, ...], close: Callable[[Session], None], **how: Any) -> Subject:
    """A session of one batch of calls, with one way to close what is open."""
    return Subject(partial(start, ids=ids), partial(go_on, ids=ids, close=close, **how), check=check_sent)


ONE, THREE = ("t1",), ("t1", "t2", "t3")
RIGHT, RIGHT_THREE = described(ONE, close_all), described(THREE, close_all)


def ask_again(lab: Lab, *, close: Callable[[Session], None]) -> list[Any]:
    """A turn that was stopped is tried again: the model calls anew, under a new id."""
    session = Session(lab.dir)
    if not session.records:
        return start(lab, ONE)
    if not session.is_over:
        close(session)
        name = f"t{1 + sum(len(each.get('ids', ())) for each in session.records)}"
        session.add("calls", ids=[name])
        session.add("result", id=name, state="done", text="a list of names")
        session.add("say", text="names")
    return [project(session.records)]


def add_to_the_same_message(_: Session) -> None:
    """Wrong: each try leaves its call open and adds another; https://github.com/anomalyco/opencode/issues/10616."""


def compact_then_go_on(lab: Lab, *, everywhere: bool) -> list[Any]:
    """A session is opened, and compacted before the next turn: a second path that sends the history.

    Wrong unless ``everywhere``: what is open is closed on one path only, so the other sends it as it is.
    https://github.com/earendil-works/pi/issues/4189
    """
    session = Session(lab.dir)
    if not session.records:
        return start(lab, ONE)
    if everywhere and not session.is_over:
        close_all(session)
    summary = [*project(session.records), {"role": "user", "content": "sum this up"}]
    return [summary, *go_on(lab, ONE, close_all)]


def compacted(*, everywhere: bool) -> Subject:
    """A session that is compacted when it is opened again."""
    return Subject(partial(start, ids=ONE), partial(compact_then_go_on, everywhere=everywhere), check=check_sent)


SCENARIOS: dict[str, Scenario] = {
    "a call left open": scenario(described(ONE, leave_open), RIGHT, "kill", "invalid-transcript"),
    "one of three results": scenario(described(THREE, leave_open), RIGHT_THREE, "kill", "invalid-transcript"),
    "an interrupt that answers one call": scenario(
        described(THREE, close_first_only), RIGHT_THREE, "kill", "invalid-transcript"
    ),
    # A result whose state is "error" is saved, and never sent: only "done" ones are.
    # https://github.com/charmbracelet/crush/issues/1860
    "a projection without errors": scenario(
        described(ONE, close_all, states=("done",)), RIGHT, "kill", "invalid-transcript"
    ),
    "each try leaves a call": scenario(
        Subject(partial(start, ids=ONE), partial(ask_again, close=add_to_the_same_message), check=check_sent),
        Subject(partial(start, ids=ONE), partial(ask_again, close=close_all), check=check_sent),
        "kill,recovery",
        "invalid-transcript",
    ),
    "repaired on one path": scenario(
        compacted(everywhere=False), compacted(everywhere=True), "kill", "invalid-transcript"
    ),
}
