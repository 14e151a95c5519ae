"""The outside world of the agent: a help desk with its own record of what was done to it.

What is recorded here happened, whatever the agent's files say, and no crash takes it back. The
world is never the agent's account of it: the harness may ask it only what a real service answers
(:meth:`World.find_replies`; a repeated key). It does not model time, rights or failures.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from longrun.errors import InvalidInput
from longrun.messages import canonical

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from longrun.inbox import Ticket


class Effect(Protocol):
    """One thing done to the world; ``counted`` is False where a known key made it nothing new."""

    @property
    def name(self) -> str:
        """What was done, by the name of the tool."""

    @property
    def key(self) -> str | None:
        """The key that makes a repetition nothing new, if any."""

    @property
    def detail(self) -> Mapping[str, Any]:
        """To what, and how."""

    @property
    def counted(self) -> bool:
        """Whether the world changed."""


class Outside(Protocol):
    """Where effects go and are remembered: a file, or the lab's own record."""

    def records(self, name: str | None = None) -> Sequence[Effect]:
        """Effects of that name, or all of them, oldest first."""

    def effect(self, name: str, *, key: str | None = None, **detail: Any) -> str:
        """Do it and return the receipt; an effect with a known key is done once."""


@dataclass(frozen=True, slots=True)
class FileEffect:
    """An effect in a :class:`FileOutside`."""

    name: str
    key: str | None
    detail: Mapping[str, Any]
    receipt: str
    counted: bool = True


@dataclass(eq=False)
class FileOutside:
    """Effects in a file of JSON lines, each synced before its receipt is given.

    Stands outside the agent's directory, and outlives its process. Half a last line is an effect
    that never came about: the file is cut there at opening.
    """

    path: Path
    effects: list[FileEffect] = field(default_factory=list)

    def __post_init__(self) -> None:
        data = self.path.read_bytes() if self.path.exists() else b""
        whole = data[: data.rfind(b"\n") + 1]
        if len(whole) != len(data):
            os.truncate(self.path, len(whole))
        self.effects = [FileEffect(**json.loads(line)) for line in whole.splitlines()]

    def records(self, name: str | None = None) -> Sequence[FileEffect]:
        """Effects of that name, or all of them, oldest first."""
        return [each for each in self.effects if name in (None, each.name)]

    def effect(self, name: str, *, key: str | None = None, **detail: Any) -> str:
        """Do it and return the receipt. Raises ValueError for a known key with other details."""
        known = next((each for each in self.effects if key is not None and (each.name, each.key) == (name, key)), None)
        if known is not None and known.detail != detail:
            text = f"effect {name!r} with key {key!r} was done with {known.detail}, now asked with {detail}"
            raise ValueError(text)
        receipt = known.receipt if known else f"{name}-{1 + sum(each.counted for each in self.effects)}"
        record = FileEffect(name, key, detail, receipt, counted=known is None)
        form = {"name": name, "key": key, "detail": detail, "receipt": receipt, "counted": record.counted}
        with self.path.open("ab", buffering=0) as file:
            file.write(canonical(form).encode() + b"\n")
            os.fsync(file.fileno())
        self.effects.append(record)
        return receipt


@dataclass(frozen=True)
class World:
    """The help desk: tickets to read, and five ways to change something."""

    outside: Outside
    inbox: Sequence[Ticket]

    # --- read-only -----------------------------------------------------------------------------

    def list_tickets(self) -> str:
        """One line per ticket."""
        return "\n".join(f"{ticket.ticket} {ticket.subject}" for ticket in self.inbox)

    def read_ticket(self, ticket: str) -> str:
        """The whole ticket. Raises InvalidInput for one that does not exist."""
        return self.find(ticket).text()

    def find_replies(self, ticket: str) -> list[Mapping[str, Any]]:
        """The replies that customers got for this ticket, oldest first."""
        return [each.detail for each in self.outside.records("send_reply") if each.detail["ticket"] == ticket]

    def find(self, ticket: str) -> Ticket:
        """The ticket of that name. Raises InvalidInput."""
        for each in self.inbox:
            if each.ticket == ticket:
                return each
        text = f"there is no ticket {ticket!r}; list_tickets shows those there are"
        raise InvalidInput(text)

    # --- changing something --------------------------------------------------------------------

    def set_label(self, *, ticket: str, label: str) -> str:
        """Overwrite the label: the same label again is nothing new."""
        return self.outside.effect("set_label", key=f"{ticket}/{label}", ticket=ticket, label=label)

    def write_report(self, *, text: str) -> str:
        """Overwrite the report: the same text again is nothing new."""
        key = hashlib.sha256(text.encode()).hexdigest()[:16]
        return self.outside.effect("write_report", key=key, text=text)

    def open_case(self, *, key: str, ticket: str, title: str) -> str:
        """Open a case; the same key again gives the first case."""
        return self.outside.effect("open_case", key=key, ticket=ticket, title=title)

    def send_reply(self, *, ticket: str, text: str, refund_yen: int) -> str:
        """Write to the customer and pay the refund. Every call is one more mail and one more payment."""
        return self.outside.effect("send_reply", ticket=ticket, text=text, refund_yen=refund_yen)

    def page_oncall(self, *, ticket: str, summary: str) -> str:
        """Wake a person. Every call rings once more, and nothing tells afterwards whether it rang."""
        return self.outside.effect("page_oncall", ticket=ticket, summary=summary)

    # --- for judges ----------------------------------------------------------------------------

    def view(self) -> dict[str, Any]:
        """What stands in the world now: labels, cases, replies, pages and the report."""
        seen: dict[str, Any] = {"labels": {}, "cases": [], "replies": [], "pages": [], "report": None}
        for each in self.outside.records():
            detail = each.detail
            match each.name:
                case "set_label":
                    seen["labels"][detail["ticket"]] = detail["label"]
                case "write_report":
                    seen["report"] = detail["text"]
                case "open_case" if each.counted:
                    seen["cases"].append(detail["ticket"])
                case "send_reply":
                    seen["replies"].append([detail["ticket"], detail["refund_yen"]])
                case "page_oncall":
                    seen["pages"].append(detail["ticket"])
        return {
            **seen,
            "cases": sorted(seen["cases"]),
            "replies": sorted(seen["replies"]),
            "pages": sorted(seen["pages"]),
        }
