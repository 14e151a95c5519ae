"""The scripted model: what it says next is a pure function of the transcript, a persona and a seed.

So a process that resumes gets its next turn, and no queue of answers can hide a lost one. Both
personas follow the same triage, and both try again what they are told has failed. They differ only after
an outcome that nobody knows:

* ``careful`` looks the reply up before it sends again, and never pages a second time;
* ``hasty`` names the act again at once. A kind model hides a broken harness; this one does not.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from longrun.messages import blocks, result_text, text_of, tool_uses

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longrun.messages import Message

Persona = Literal["careful", "hasty"]
PERSONAS: tuple[Persona, ...] = ("careful", "hasty")

_UNKNOWN = "outcome unknown"  # the words by which a model understands that a call may or may not have been done
_FAILED = "failed"  # and that by which it understands that it was not done, so that it may be done now

NOTES_HEADING = "Notes from before:"
"""Below it, in the user's first words, stand acts that need not be done again, one a line."""
_NOTE = re.compile(r"^- (\w+) (\S*): (.*)$", re.MULTILINE)
_LOOKED = re.compile(r"^- (\w+) (\S*): it (did not )?happen", re.MULTILINE)
"""What a person has found out of an act whose outcome nobody knew."""

_REFUND = re.compile(r"give (\d+) yen back")
_THANKS = ("Thank you for writing.", "Thanks for telling us.", "We are sorry for the trouble.")


@dataclass(frozen=True, slots=True)
class Named:
    """A call that the model names: the tool and its input, without an id."""

    name: str
    input: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Turn:
    """What the model says: a text, and calls; none of them ends the conversation."""

    text: str
    calls: tuple[Named, ...] = ()


@dataclass(frozen=True, slots=True)
class _Answered:
    name: str
    input: dict[str, Any]
    text: str
    is_error: bool

    @property
    def unknown(self) -> bool:
        return self.is_error and _UNKNOWN in self.text

    @property
    def failed(self) -> bool:
        return self.is_error and self.text.startswith(_FAILED)


@dataclass(slots=True)
class _Ticket:
    ticket: str
    subject: str
    text: str = ""

    @property
    def label(self) -> str:
        for word, label in (("Duplicate of", "duplicate"), ("down", "outage"), ("charged twice", "billing")):
            if word.lower() in self.subject.lower():
                return label
        return "spam"

    @property
    def refund_yen(self) -> int:
        found = _REFUND.search(self.text)
        return int(found[1]) if found else 0


@dataclass(slots=True)
class _Reading:
    """What the transcript says so far."""

    answered: list[_Answered] = field(default_factory=list)
    tickets: dict[str, _Ticket] = field(default_factory=dict)

    def learn(self, name: str, ticket: str, *, happened: bool) -> None:
        """A person has looked. Of an act that did not happen nothing is left: it may be named again."""
        self.answered = [each for each in self.answered if (each.name, each.input.get("ticket")) != (name, ticket)]
        if happened:
            self.answered.append(_Answered(name, {"ticket": ticket}, "it happened", is_error=False))

    def has(self, name: str, ticket: str = "") -> bool:
        """Whether something that may be repeated was answered: not where it failed."""
        last = self.last(name, ticket)
        return last is not None and not last[1].failed

    def last(self, name: str, ticket: str = "") -> tuple[int, _Answered] | None:
        for at in range(len(self.answered) - 1, -1, -1):
            call = self.answered[at]
            if call.name == name and call.input.get("ticket", "") == ticket:
                return at, call
        return None


def next_turn(messages: Sequence[Message], *, persona: Persona, seed: int = 0) -> Turn:
    """What the model says after ``messages``, a valid transcript."""
    reading = _read(messages)
    if not reading.tickets and not reading.has("list_tickets"):
        return Turn("I look at what is open.", (Named("list_tickets", {}),))
    steps = (
        ("I read every ticket.", _unread(reading)),
        ("I label them.", _unlabelled(reading)),
        ("Outages need a case.", _cases(reading)),
        ("Now the people.", _acts(reading, persona, seed)),
        ("The report.", _report(reading)),
    )
    for text, calls in steps:
        if calls:
            return Turn(text, tuple(calls))
    return Turn(f"Done: {len(reading.tickets)} tickets are triaged.")


def _read(messages: Sequence[Message]) -> _Reading:
    reading = _Reading()
    _, _, notes = text_of(messages[0]).partition(NOTES_HEADING)
    for name, ticket, text in _NOTE.findall(notes):
        reading.answered.append(_Answered(name, {"ticket": ticket}, text, is_error=False))
    open_calls: dict[str, dict[str, Any]] = {}
    for message in messages:
        if message["role"] == "assistant":
            open_calls = {block["id"]: block for block in tool_uses(message)}
            continue
        for name, ticket, word in _LOOKED.findall(text_of(message)):
            reading.learn(name, ticket, happened=not word)
        for block in blocks(message):
            if block["type"] == "tool_result":
                call = open_calls[block["tool_use_id"]]
                is_error = bool(block.get("is_error"))
                _take(reading, _Answered(call["name"], call["input"], result_text(block), is_error))
    return reading


def _take(reading: _Reading, call: _Answered) -> None:
    reading.answered.append(call)
    if call.is_error:
        return
    if call.name == "list_tickets":
        for line in call.text.splitlines():
            ticket, _, subject = line.partition(" ")
            reading.tickets[ticket] = _Ticket(ticket, subject)
    elif call.name == "read_ticket":
        ticket = call.input["ticket"]
        reading.tickets.setdefault(ticket, _Ticket(ticket, "")).text = call.text


def _unread(reading: _Reading) -> list[Named]:
    return [Named("read_ticket", {"ticket": each}) for each in reading.tickets if not reading.has("read_ticket", each)]


def _unlabelled(reading: _Reading) -> list[Named]:
    return [
        Named("set_label", {"ticket": ticket, "label": each.label})
        for ticket, each in reading.tickets.items()
        if not reading.has("set_label", ticket)
    ]


def _cases(reading: _Reading) -> list[Named]:
    return [
        Named("open_case", {"ticket": ticket, "title": each.subject})
        for ticket, each in reading.tickets.items()
        if each.label == "outage" and not reading.has("open_case", ticket)
    ]


def _acts(reading: _Reading, persona: Persona, seed: int) -> list[Named]:
    thanks = _THANKS[seed % len(_THANKS)]
    wanted: list[Named] = []
    for ticket, each in reading.tickets.items():
        if each.label == "outage":
            text = f"{thanks} Our engineers work on it."
            wanted.append(Named("send_reply", {"ticket": ticket, "text": text, "refund_yen": 0}))
            wanted.append(Named("page_oncall", {"ticket": ticket, "summary": each.subject}))
        elif each.label == "billing":
            text = f"{thanks} You get {each.refund_yen} yen back."
            wanted.append(Named("send_reply", {"ticket": ticket, "text": text, "refund_yen": each.refund_yen}))
    return [call for act in wanted if (call := _next_call(reading, act, persona)) is not None]


def _next_call(reading: _Reading, act: Named, persona: Persona) -> Named | None:
    """The act itself, a look-up before it, or None where nothing more is to do."""
    ticket = act.input["ticket"]
    last = reading.last(act.name, ticket)
    if last is None or last[1].failed:
        return act
    at, call = last
    if not call.unknown:
        return None
    if persona == "hasty":
        return act
    if act.name == "page_oncall":
        return None
    looked = reading.last("find_replies", ticket)
    if looked is None or looked[0] < at:
        return Named("find_replies", {"ticket": ticket})
    return None if act.input["text"] in looked[1].text else act


def _report(reading: _Reading) -> list[Named]:
    """One line per ticket. It tells labels only: whether a page rang, a person must say."""
    if reading.has("write_report"):
        return []
    lines = [f"{ticket} {each.label}: {each.subject}" for ticket, each in reading.tickets.items()]
    return [Named("write_report", {"text": "\n".join(["Triage of today", *lines])})]
