"""A reader that believes every whole checkpoint of its version: no question whether what it says makes sense.

The published protocol has no other. It is no fault by itself, since a correct writer saves no nonsense; the
naive modules that save some use it, so that their fault comes to light where it would in life.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from longrun.checkpoint import correct
from longrun.protocol import CHECKPOINT_NAME, believe, parse_object, require_checksum, require_version

if TYPE_CHECKING:
    from pathlib import Path

    from longrun.protocol import Checkpoint


def load(directory: Path) -> Checkpoint | None:
    """The checkpoint in ``directory``, None where there is none. Raises Damaged or UnsupportedVersion."""
    path = directory / CHECKPOINT_NAME
    data = correct.read(path)
    if data is None:
        return None
    form = parse_object(data, path)
    require_version(form, path)
    require_checksum(data, form, path)
    return believe(form, path)


HARNESS = replace(correct.HARNESS, load=load)
