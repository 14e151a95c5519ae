"""The one fault: a checkpoint of any other version is read as one of an older protocol.

That one had neither a checksum nor an end marker, so neither is looked at. A single flipped bit in the
version number is enough to leave the checks behind, and a finished run goes on after its end.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from longrun.checkpoint import correct
from longrun.inbox import SHORT_BODY_BYTES
from longrun.protocol import CHECKPOINT_NAME, VERSION, decode, from_form, parse_object
from longrun.subjects import describe

if TYPE_CHECKING:
    from pathlib import Path

    from longrun.protocol import Checkpoint


def load(directory: Path) -> Checkpoint | None:
    """The checkpoint in ``directory``, of whatever version."""
    path = directory / CHECKPOINT_NAME
    data = correct.read(path)
    if data is None:
        return None
    form = parse_object(data, path)
    if form.get("version") == VERSION:
        return decode(data, path)
    return from_form({**form, "version": VERSION, "status": "running", "end": None}, path)


HARNESS = replace(correct.HARNESS, load=load)

subject = describe(HARNESS, name="checkpoint/naive_any_version", body_bytes=SHORT_BODY_BYTES)
