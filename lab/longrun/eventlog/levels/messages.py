"""Level 1: a list of messages. Enough for a chat; a branch is a copy, and an open call is a riddle.

It says nothing of calls that were begun, so that after a crash each open call may have happened; and nothing of what
was sent beside the messages, so that no request can be made again.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from longrun.eventlog.levels.lines import append_line, open_lines
from longrun.eventlog.levels.work import joined
from longrun.files import remove_temporary, sync_directory, temporary_name, write_new
from longrun.messages import canonical, text_of, user

if TYPE_CHECKING:
    from pathlib import Path

    from longrun.messages import Block, Message

FIRST, COPY = "messages-0.jsonl", "messages-1.jsonl"


class MessageList:
    """The session in ``directory``: one file for each branch."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        remove_temporary(directory)
        self._files = {name: open_lines(directory / name) for name in (FIRST, COPY) if (directory / name).exists()}

    def messages(self) -> list[Message]:
        """The newest file."""
        return joined(self._files[max(self._files)]) if self._files else []

    def history(self) -> list[Message]:
        """All files, what was copied twice."""
        return [entry for name in sorted(self._files) for entry in self._files[name]]

    def _add(self, entry: Message) -> None:
        name = max(self._files, default=FIRST)
        append_line(self._directory / name, entry)
        self._files.setdefault(name, []).append(entry)

    def say(self, text: str) -> None:
        """A message of the user."""
        self._add(user(text))

    def asks(self, request: dict[str, Any]) -> None:
        """Nothing is kept of it."""

    def answer(self, content: list[Block]) -> None:
        """A message of the assistant."""
        self._add({"role": "assistant", "content": content})

    def begin(self, call: Block) -> None:
        """Nothing is kept of it."""

    def result(self, call: Block, block: Block) -> None:  # noqa: ARG002 - the log keeps more of it
        """A message of the user again."""
        self._add({"role": "user", "content": [block]})

    def interrupted(self) -> bool:
        """Nobody has closed anything."""
        return False

    def requests(self) -> list[dict[str, Any]]:
        """None: the messages before each answer are there, but not what was sent with them."""
        return []

    def go_back(self, text: str) -> None:
        """Copy what stands before that message."""
        self.branch(next(at for at, each in enumerate(self._files[FIRST]) if text_of(each) == text))

    def branch(self, count: int) -> None:
        """Go on from the first ``count`` messages, in a new file, which is there whole or not at all."""
        kept = self._files[FIRST][:count]
        temporary = temporary_name(self._directory / COPY)
        write_new(temporary, b"".join(canonical(entry).encode() + b"\n" for entry in kept), sync=True)
        os.rename(temporary, self._directory / COPY)
        sync_directory(self._directory)
        self._files[COPY] = kept

    def went_back(self) -> bool:
        """Whether there is a copy."""
        return COPY in self._files
