"""The subjects of the demonstration, naive ones first, each with what the lab must find in it."""

from __future__ import annotations

from typing import NamedTuple


class Exhibit(NamedTuple):
    """A subject by its import path, the kind of violation that it shows ("" for none), and what it is asked for."""

    subject: str
    kind: str
    options: tuple[str, ...] = ("--faults=kill",)


POWER = ("--faults=kill,power", "--profile=xfs")
"""Kills, and power losses as xfs allows them: there a missing sync leaves a file of 0 bytes."""

DEMO: tuple[Exhibit, ...] = (
    Exhibit("longrun.checkpoint.naive_in_place:subject", "stuck"),
    Exhibit("longrun.checkpoint.naive_b_only:subject", "duplicate-effect"),
    Exhibit("longrun.resume.naive_drop_call:subject", "duplicate-effect"),
    Exhibit("longrun.checkpoint.naive_no_fsync:subject", "stuck", POWER),
    Exhibit("longrun.checkpoint.correct:subject_hasty", ""),
    Exhibit("longrun.checkpoint.correct:subject", "", POWER),
)
