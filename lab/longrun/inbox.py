"""The tickets that the agent works on: the default inbox, and others from a seed.

A ticket's text is a pure function of the seed. Bodies carry a log excerpt, so that a checkpoint
that holds them fills several pages of a file and a kill can cut it in the middle.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

DEFAULT_SEED = 0
BODY_BYTES = 1_100
"""So long that a kill has about 30 places inside a write, and the last checkpoint three pages."""
SHORT_BODY_BYTES = 600
"""Enough for a checkpoint of more than one page; a naive agent shows its fault sooner on less."""
_DEFAULT_KINDS = ("outage", "charge", "duplicate", "spam")
_SMALLEST, _LARGEST = 3, 7

_SUBJECTS = {
    "outage": ("Checkout is down", "Search is down for all our staff", "Login is down since this morning"),
    "charge": ("Charged twice for one order", "My card was charged twice"),
    "duplicate": ("Duplicate of {first}: still waiting", "Duplicate of {first}, any news?"),
    "spam": ("Triple your traffic in nine days", "A prize waits for your company"),
}
_OPENINGS = {
    "outage": "Nobody can work since 09:12. Every attempt ends with an error page, on all machines.",
    "charge": "I bought one thing and paid {yen} yen two times. Please give {yen} yen back.",
    "duplicate": "I wrote to you as {first} and heard nothing, so here it is again.",
    "spam": "Dear owner, our network of partners is ready for you. Answer today.",
}
_SENDERS = ("aoki", "berg", "chandra", "dubois", "eze", "fujita", "garcia")


@dataclass(frozen=True, slots=True)
class Ticket:
    """One letter from a customer."""

    ticket: str
    sender: str
    subject: str
    body: str

    def text(self) -> str:
        """The ticket as ``read_ticket`` shows it."""
        return f"{self.ticket}\nFrom: {self.sender}\nSubject: {self.subject}\n\n{self.body}"


@lru_cache(maxsize=8)
def make_inbox(seed: int = DEFAULT_SEED, *, body_bytes: int = BODY_BYTES) -> tuple[Ticket, ...]:
    """The inbox of a seed. Seed 0 is T-101 checkout down, T-102 charged twice, T-103 duplicate, T-104 spam.

    >>> [ticket.ticket for ticket in make_inbox()]
    ['T-101', 'T-102', 'T-103', 'T-104']
    """
    if seed == DEFAULT_SEED:
        kinds: Sequence[str] = _DEFAULT_KINDS
        first_number, yen = 101, 1000
    else:
        count = _SMALLEST + _number(seed, "count") % (_LARGEST - _SMALLEST + 1)
        drawn = ("outage", "charge", "duplicate", "spam", "charge", "outage", "spam")
        kinds = [drawn[at] for at in sorted(range(count), key=lambda at: _number(seed, f"order {at}"))]
        first_number, yen = 200 + _number(seed, "ticket") % 700, 100 * (5 + _number(seed, "yen") % 90)
    first = f"T-{first_number + next(at for at, kind in enumerate(kinds) if kind != 'duplicate')}"
    return tuple(
        _make_ticket(
            seed,
            f"T-{first_number + at}",
            kind,
            first=first,
            yen=yen + 100 * at * (seed != DEFAULT_SEED),
            body_bytes=body_bytes,
        )
        for at, kind in enumerate(kinds)
    )


def _make_ticket(  # noqa: PLR0913 - half of them by keyword
    seed: int, ticket: str, kind: str, *, first: str, yen: int, body_bytes: int
) -> Ticket:
    subjects = _SUBJECTS[kind]
    subject = subjects[0 if seed == DEFAULT_SEED else _number(seed, ticket) % len(subjects)].format(first=first)
    sender = _SENDERS[_number(seed, f"{ticket} sender") % len(_SENDERS)]
    opening = _OPENINGS[kind].format(first=first, yen=yen)
    excerpt = _log_excerpt(_number(seed, f"{ticket} log"), body_bytes - len(opening))
    return Ticket(ticket, f"{sender}@example.com", subject, f"{opening}\n\nWhat my machine noted:\n{excerpt}")


def _log_excerpt(state: int, size: int) -> str:
    """About ``size`` characters of log lines."""
    lines, length = [], 0
    while length < size:
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        minute, worker, order, milliseconds = (
            state >> 58,
            (state >> 50) % 8,
            (state >> 32) % 100_000,
            (state >> 20) % 9_000,
        )
        line = f"09:{minute % 60:02d} worker {worker} order {order:05d} answered after {milliseconds:4d} ms"
        lines.append(line)
        length += len(line) + 1
    return "\n".join(lines)


def _number(seed: int, what: str) -> int:
    """A number drawn from the seed: by hash, since :mod:`random` may change between versions."""
    return int.from_bytes(hashlib.sha256(f"{seed}/{what}".encode()).digest()[:6], "big")
