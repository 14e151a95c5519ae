"""The canonical text of a transcript that only grows: what was put together for one save is kept for the next.

A run saves its whole transcript again and again, each time a message or two longer. Here the text of the
leading messages that are the very same objects as last time is taken as it stands, and only the rest is made
into JSON. Messages are never changed in place; an equal object of another identity is made into text anew.

At most :data:`RUNS_KEPT` transcripts are kept, each with its text once.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import takewhile
from operator import is_
from typing import TYPE_CHECKING

from longrun.messages import canonical

if TYPE_CHECKING:
    from collections.abc import Sequence

    from longrun.messages import Message

RUNS_KEPT = 4


@dataclass(frozen=True, slots=True)
class _Kept:
    """A transcript and its text; message number ``n`` ends at ``ends[n]``."""

    messages: tuple[Message, ...]
    ends: tuple[int, ...]
    text: bytes


_kept: dict[int, _Kept] = {}
"""By the identity of the first message, which is that of the run. A value is never changed, so threads may share it."""


def transcript_text(messages: Sequence[Message]) -> bytes:
    """The texts of all messages, joined by commas.

    >>> transcript_text([{"role": "user", "content": "go"}])
    b'{"content":"go","role":"user"}'
    """
    if not messages:
        return b""
    last = _kept.pop(id(messages[0]), None)
    same = sum(1 for _ in takewhile(bool, map(is_, last.messages, messages))) if last else 0
    pieces = [canonical(message).encode() for message in messages[same:]]
    ends = list(last.ends[:same]) if last else []
    for piece in pieces:
        ends.append((ends[-1] + 1 if ends else 0) + len(piece))
    text = last.text if last else b""
    if pieces or len(ends) != len(last.ends if last else ()):
        head = [memoryview(text)[: ends[same - 1]]] if same else []
        text = b",".join([*head, *pieces])
    for oldest in list(_kept)[: 1 - RUNS_KEPT]:
        _kept.pop(oldest, None)
    _kept[id(messages[0])] = _Kept(tuple(messages), tuple(ends), text)
    return text
