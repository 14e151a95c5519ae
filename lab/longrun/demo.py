"""The subjects of the demonstration, naive ones first, by import path."""

from __future__ import annotations

DEMO: tuple[str, ...] = (
    "longrun.checkpoint.naive_in_place:subject",
    "longrun.checkpoint.naive_b_only:subject",
    "longrun.resume.naive_drop_call:subject",
    "longrun.checkpoint.correct:subject",
    "longrun.checkpoint.correct:subject_hasty",
)
