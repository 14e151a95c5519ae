"""A run that an agent of protocol v1 has left, and that ours takes over: the subject of the test of conversions."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crashlab import Subject
from longrun import v1
from longrun.checkpoint import correct
from longrun.files import sync_directory, temporary_name, write_new
from longrun.inbox import SHORT_BODY_BYTES
from longrun.ledger import LEDGER_NAME
from longrun.protocol import CHECKPOINT_NAME, encode
from longrun.subjects import describe

if TYPE_CHECKING:
    from longrun.harness import Harness

LEFT = Path(__file__).parents[1] / "longrun/corpus/v1/good/result-is-an-object"


def forgetful(directory: Path) -> None:
    """Wrong: takes the old map away before its records stand in the new ledger."""
    found = v1.read(directory)
    if found is not None:
        (directory / v1.EFFECTS_NAME).unlink(missing_ok=True)
        v1._put(directory / LEDGER_NAME, b"".join(record.line() for record in found.records))
        v1._put(directory / CHECKPOINT_NAME, encode(found.checkpoint))


def taken_over(agent: Subject, lab: Any) -> Any:
    """Resume what version 1 has left. Its own files are there before anything else happens; so they are put there."""
    assert agent.resume is not None
    if not (lab.dir / CHECKPOINT_NAME).exists():
        for name in ("effects.json", CHECKPOINT_NAME):
            temporary = temporary_name(lab.dir / name)
            write_new(temporary, (LEFT / name).read_bytes(), sync=True)
            os.rename(temporary, lab.dir / name)
            sync_directory(lab.dir)
    return agent.resume(lab)


def subject_with(harness: Harness, name: str) -> Subject:
    """The agent with this harness, which finds a run of version 1."""
    agent = describe(harness, name=name, body_bytes=SHORT_BODY_BYTES)
    return Subject(partial(taken_over, agent), check=agent.check, view=agent.view, name=name)


SUBJECT = subject_with(correct.HARNESS, "a run of version 1")
FORGETFUL = subject_with(replace(correct.HARNESS, convert=forgetful), "a run of version 1, its map removed first")
