"""Level 2: entries with a parent, and a leaf. A branch is one line; after a crash no more is known than at level 1.

The leaf is the last entry, or where a later line moves it: so it is the same after a restart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from longrun.eventlog.levels.lines import append_line, open_lines
from longrun.eventlog.levels.work import joined
from longrun.messages import text_of, user

if TYPE_CHECKING:
    from pathlib import Path

    from longrun.messages import Block, Message

NAME = "tree.jsonl"


class EntryTree:
    """The session in ``directory``. An entry is ``{"parent", "message"}``, a move ``{"leaf"}``; ids count lines."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / NAME
        self._lines: list[dict[str, Any]] = open_lines(self._path)

    def _leaf(self) -> int | None:
        if not self._lines:
            return None
        at = len(self._lines) - 1
        leaf: int | None = self._lines[at].get("leaf", at)
        return leaf

    def messages(self) -> list[Message]:
        """From the leaf by the parents to the first."""
        found, at = [], self._leaf()
        while at is not None:
            found.append(self._lines[at]["message"])
            at = self._lines[at]["parent"]
        return joined(found[::-1])

    def history(self) -> list[Message]:
        """All entries."""
        return [line["message"] for line in self._lines if "message" in line]

    def _add(self, line: dict[str, Any]) -> None:
        append_line(self._path, line)
        self._lines.append(line)

    def _add_message(self, message: Message) -> None:
        self._add({"parent": self._leaf(), "message": message})

    def say(self, text: str) -> None:
        """A message of the user."""
        self._add_message(user(text))

    def asks(self, request: dict[str, Any]) -> None:
        """Nothing is kept of it."""

    def answer(self, content: list[Block]) -> None:
        """A message of the assistant."""
        self._add_message({"role": "assistant", "content": content})

    def begin(self, call: Block) -> None:
        """Nothing is kept of it."""

    def result(self, call: Block, block: Block) -> None:  # noqa: ARG002 - the log keeps more of it
        """A message of the user again."""
        self._add_message({"role": "user", "content": [block]})

    def interrupted(self) -> bool:
        """Nobody has closed anything."""
        return False

    def requests(self) -> list[dict[str, Any]]:
        """None: the messages before each answer are there, but not what was sent with them."""
        return []

    def go_back(self, text: str) -> None:
        """Move the leaf."""
        found = next(line for line in self._lines if "message" in line and text_of(line["message"]) == text)
        self._add({"leaf": found["parent"]})

    def branch(self, count: int) -> None:
        """Go on behind the first ``count`` lines."""
        self._add({"leaf": count - 1 if count else None})

    def went_back(self) -> bool:
        """Whether the leaf was ever moved."""
        return any("leaf" in line for line in self._lines)
