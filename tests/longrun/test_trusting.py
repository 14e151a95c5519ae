"""Tests of longrun.resume.trusting: it believes what makes no sense, and refuses what is not whole, as all do."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from longrun.checkpoint import correct
from longrun.errors import Damaged, UnsupportedVersion
from longrun.messages import user
from longrun.protocol import CHECKPOINT_NAME, Checkpoint, OpenCall
from longrun.resume import trusting

if TYPE_CHECKING:
    from pathlib import Path

SOUND = Checkpoint(run_id="r", task="t", messages=(user("t"),), seq=1)
NAMED_NOWHERE = OpenCall(id="toolu_1", name="list_tickets", input={}, key=None)


@pytest.mark.parametrize("nonsense", [{"turns": 3}, {"pending_tool_use": (NAMED_NOWHERE,)}, {"status": "done"}])
def test_it_believes_what_the_strict_reader_refuses(tmp_path: Path, nonsense: dict[str, object]) -> None:
    """A checkpoint that no correct writer saves is refused by one, and gone on with by the other."""
    saved = replace(SOUND, **nonsense)  # type: ignore[arg-type]  # the fields are as different as their types
    correct.save(tmp_path, saved)
    with pytest.raises(Damaged):
        correct.load(tmp_path)
    assert trusting.load(tmp_path) == saved


def test_it_refuses_what_is_not_whole(tmp_path: Path) -> None:
    """A cut, a changed byte, another version; and nothing is nothing."""
    assert trusting.load(tmp_path) is None
    correct.save(tmp_path, SOUND)
    path = tmp_path / CHECKPOINT_NAME
    data = path.read_bytes()
    for broken in (data[:-1], data.replace(b'"task":"t"', b'"task":"u"')):
        path.write_bytes(broken)
        with pytest.raises(Damaged):
            trusting.load(tmp_path)
    path.write_bytes(b'{"version":3}')
    with pytest.raises(UnsupportedVersion):
        trusting.load(tmp_path)
