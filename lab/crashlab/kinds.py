"""The kinds of violation, in the order in which they are shown. Every process of the lab loads this module."""

from __future__ import annotations

KINDS: tuple[str, ...] = (
    "accepted-damage",
    "silent-reset",
    "torn",
    "lost",
    "evidence-destroyed",
    "duplicate-effect",
    "missing-effect",
    "duplicate-entry",
    "hole",
    "stale-write",
    "invalid-transcript",
    "guard-bypassed",
    "diverged",
    "needless-unknown",
    "hang",
    "stuck",
    "left-process",
)
"""Violation kinds, gravest first."""


def gravity(kind: str) -> int:
    """Rank of a kind: 0 is the gravest; unknown kinds, named by a user's ``check``, come last."""
    return KINDS.index(kind) if kind in KINDS else len(KINDS)
